"""Vertikal: kernel machines on vertically partitioned data.

from vertikal import FDSKLClassifier
model = FDSKLClassifier(parties={"bank": bank_columns, "shop": shop_columns}).fit(X, y)
model.predict_proba(X_test); model.ledger_          # who learned what
"""

from vertikal.estimators.admm import ADMMClassifier, ADMMRegressor
from vertikal.estimators.avfkam import AVFKAMClassifier
from vertikal.estimators.classifier import FDSKLClassifier
from vertikal.estimators.recommender import CFKOMDRecommender, FedCFKRecommender
from vertikal.estimators.regressor import FDSKLRegressor
from vertikal.estimators.secure_kernel_machines import SecureKernelRidge, SecureKernelSVC
from vertikal.version import __version__

__all__ = [
    "ADMMClassifier",
    "ADMMRegressor",
    "AVFKAMClassifier",
    "CFKOMDRecommender",
    "FDSKLClassifier",
    "FDSKLRegressor",
    "FedCFKRecommender",
    "SecureKernelRidge",
    "SecureKernelSVC",
    "__version__",
]
