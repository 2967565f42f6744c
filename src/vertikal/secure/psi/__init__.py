"""Private set intersection: the ids that all parties have, and nothing about the others.

The protocol (`intersection`), the group it computes in, the oblivious table it sends, and the count
of what two parties hold alike (`equal_count`) enter.
"""
