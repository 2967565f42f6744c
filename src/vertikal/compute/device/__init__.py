"""Products on a GPU, by torch: phases, passes over them, Gram matrix and what a solver keeps a row.

What enters runs on any device of torch, so that its build for processors passes the same tests.
Only `choice` imports torch by itself; whoever imports another module has a device already.
"""
