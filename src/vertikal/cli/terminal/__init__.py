"""Terminal: what several commands share, such as options, tables, passphrases and a user's stop.

No command enters here: each of them is a file of the folder above.
"""
