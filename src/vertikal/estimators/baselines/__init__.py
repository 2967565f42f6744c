"""Estimators of the federated methods that the papers compare with, for reproduction.

Simulated parties only enter, with the interface of the other estimators and a ledger of their own.
"""

from vertikal.estimators.baselines.linear import (
    AFSGDVPClassifier,
    AFSVRGVPClassifier,
    AsySQNClassifier,
    FDMLClassifier,
    FDSVRGClassifier,
)
from vertikal.estimators.baselines.secure_boost import SecureBoostClassifier
from vertikal.estimators.baselines.vafl import VAFLClassifier

__all__ = [
    "AFSGDVPClassifier",
    "AFSVRGVPClassifier",
    "AsySQNClassifier",
    "FDMLClassifier",
    "FDSVRGClassifier",
    "SecureBoostClassifier",
    "VAFLClassifier",
]
