"""Labels of several label parties: compared before training, joined where each has a part.

What is about labels only enters: their comparison, weights of rows that several parties label, sums
over the parts, and objectives made of such sums.
"""
