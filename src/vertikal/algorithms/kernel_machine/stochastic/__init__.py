"""The papers' stochastic solvers: a label party's learner, two schedules for its steps, a curve.

FDSKL's and AVFKAM's own updates, the exact solver and the making of features stay outside.
"""
