"""FDSKL and AVFKAM: kernel machines on random features, their levels of disclosure, their solvers.

What only one of the two needs stands in `fdskl` or `avfkam`; all else is common to both.
"""
