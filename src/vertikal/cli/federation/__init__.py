"""How organisations become a federation: keys, invitations, members and their changes.

Commands that write or check the federation file, or a party's key for it, enter.
"""
