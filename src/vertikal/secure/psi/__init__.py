"""Private set intersection: the ids that all parties have, and nothing about the others.

The group, the oblivious table and the protocol over them enter.
"""
