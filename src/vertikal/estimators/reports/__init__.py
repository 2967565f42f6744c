"""What a fitted estimator tells about itself: how good it is, what its run cost, one page of both.

Measures, tables and pages enter here; how charts are drawn is in `reporting`.
"""
