"""A party's own rows and columns: reading them block by block, and preparing them.

Everything here is local to one party and knows nothing of the others.
"""
