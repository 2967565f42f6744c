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
    from vertikal.estimators.admm import ADMMClassifier, ADMMRegressor
    from vertikal.estimators.classifier import FDSKLClassifier
    from vertikal.estimators.recommender import CFKOMDRecommender, FedCFKRecommender
    from vertikal.estimators.regressor import FDSKLRegressor
    from vertikal.estimators.secure_kernel_machines import SecureKernelRidge, SecureKernelSVC

__all__ = [
    "ADMMClassifier",
    "ADMMRegressor",
    "CFKOMDRecommender",
    "FDSKLClassifier",
    "FDSKLRegressor",
    "FedCFKRecommender",
    "SecureKernelRidge",
    "SecureKernelSVC",
    "__version__",
]

# Loaded when first asked for: a party's service and the command line start without scikit-learn.
_HOMES = {
    "ADMMClassifier": "admm",
    "ADMMRegressor": "admm",
    "CFKOMDRecommender": "recommender",
    "FDSKLClassifier": "classifier",
    "FDSKLRegressor": "regressor",
    "FedCFKRecommender": "recommender",
    "SecureKernelRidge": "secure_kernel_machines",
    "SecureKernelSVC": "secure_kernel_machines",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vertikal' has no attribute {name!r}")
    return getattr(import_module(f"vertikal.estimators.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
