"""Private set intersection: the ids that all parties have, and nothing about the others.

The protocol (`intersection`), the group it computes in and the oblivious table it sends enter.
"""
