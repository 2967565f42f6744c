"""Where products happen: operators that hold the features, and the threads that multiply by them.

Every `FeatureOperator` (`solvers.feature_operator`) that is no protocol enters; solvers never see
which of them they multiply by.
"""
