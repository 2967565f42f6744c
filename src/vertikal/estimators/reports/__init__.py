"""Reports of fitted estimators: how good a model is, what its run cost, one page of both.

Measures, tables and pages enter here; how charts are drawn is in `reporting`.
"""
