"""Models to compare a federated one with: the same mathematics without a federation.

Estimators with scikit-learn's interface enter, built from the kernels, losses and solvers that
the programs use, so that a difference in time or error is the price of the federation alone.
"""

from vertikal.baselines.pooled import PooledKernelClassifier

__all__ = ["PooledKernelClassifier"]
