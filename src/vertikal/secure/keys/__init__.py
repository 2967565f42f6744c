"""Keys and who holds them: the generator of everything secret, agreement, identities.

What derives, agrees on or proves keys enters; what is done with them stays in the other rooms.
"""
