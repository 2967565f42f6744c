"""The papers' stochastic solvers: one step, two schedules for it, and the curve of a run.

Whatever concerns the exact solver or the making of features stays outside.
"""
