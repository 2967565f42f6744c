"""Commands that make and change a federation: keys, invitations, members.

Whatever writes or checks the federation file, or a party's key for it, enters.
"""
