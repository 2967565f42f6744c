"""FDSKL and AVFKAM: kernel machines on random features, their levels of disclosure, their solvers.

The update and problem of each stand in `fdskl` and `avfkam`; everything else serves both.
"""
