"""Places where products happen: operators that hold the features, and threads that multiply.

A `FeatureOperator` (`solvers.feature_operator`) enters if it needs no protocol between parties.
Solvers never see which operator they multiply by.
"""
