"""ADMM sharing (Hu et al. 2019): linear and additive models, with differential privacy.

The parties' updates, the central node, the noise, and the settings and shards of such jobs enter.
"""
