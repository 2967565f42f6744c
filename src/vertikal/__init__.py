"""Vertikal: kernel machines on vertically partitioned data.

from vertikal import FDSKLClassifier
model = FDSKLClassifier(parties={"bank": bank_columns, "shop": shop_columns}).fit(X, y)
model.predict_proba(X_test); model.ledger_          # who learned what
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vertikal.version import __version__

if TYPE_CHECKING:
    from vertikal.algorithms.admm.settings import Gaussian, Privacy
    from vertikal.algorithms.kernel_machine.settings import (
        Fourier,
        Landmarks,
        Sealed,
        Stochastic,
        Values,
    )
    from vertikal.compute.workers.cluster import Workers
    from vertikal.estimators.admm import ADMMClassifier, ADMMRegressor
    from vertikal.estimators.avfkam import AVFKAMClassifier
    from vertikal.estimators.fdskl import FDSKLClassifier, FDSKLRegressor
    from vertikal.estimators.kernel import KernelClassifier, KernelRegressor
    from vertikal.estimators.recommender import CFKOMDRecommender, FedCFKRecommender
    from vertikal.estimators.search_cv import FederatedSearchCV
    from vertikal.estimators.secure_kernel import SecureKernelRidge, SecureKernelSVC

__all__ = [
    "ADMMClassifier",
    "ADMMRegressor",
    "AVFKAMClassifier",
    "CFKOMDRecommender",
    "FDSKLClassifier",
    "FDSKLRegressor",
    "FedCFKRecommender",
    "FederatedSearchCV",
    "Fourier",
    "Gaussian",
    "KernelClassifier",
    "KernelRegressor",
    "Landmarks",
    "Privacy",
    "Sealed",
    "SecureKernelRidge",
    "SecureKernelSVC",
    "Stochastic",
    "Values",
    "Workers",
    "__version__",
]

# Loaded when first asked for: a party's service and the command line start without scikit-learn.
_HOMES = {
    "ADMMClassifier": "estimators.admm",
    "ADMMRegressor": "estimators.admm",
    "AVFKAMClassifier": "estimators.avfkam",
    "CFKOMDRecommender": "estimators.recommender",
    "FDSKLClassifier": "estimators.fdskl",
    "FDSKLRegressor": "estimators.fdskl",
    "FedCFKRecommender": "estimators.recommender",
    "FederatedSearchCV": "estimators.search_cv",
    "Fourier": "algorithms.kernel_machine.settings",
    "Gaussian": "algorithms.admm.settings",
    "KernelClassifier": "estimators.kernel",
    "KernelRegressor": "estimators.kernel",
    "Landmarks": "algorithms.kernel_machine.settings",
    "Privacy": "algorithms.admm.settings",
    "Sealed": "algorithms.kernel_machine.settings",
    "SecureKernelRidge": "estimators.secure_kernel",
    "SecureKernelSVC": "estimators.secure_kernel",
    "Stochastic": "algorithms.kernel_machine.settings",
    "Values": "algorithms.kernel_machine.settings",
    "Workers": "compute.workers.cluster",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vertikal' has no attribute {name!r}")
    return getattr(import_module(f"vertikal.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
