"""Terminal: what several commands share, such as options, tables, passphrases and a user's stop.

No command enters here: each of them has a file or folder of its own beside this one.
"""
