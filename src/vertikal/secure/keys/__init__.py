"""Keys and their holders: the generator of everything secret, agreement, seeds, identities.

Code that derives, agrees on or proves keys enters; what is done with keys stays in other rooms.
"""
