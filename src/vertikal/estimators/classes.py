"""What federated classifiers share: labels to ±1, and predictions back to classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from vertikal.errors import InputError
from vertikal.losses.pointwise import LOSSES

Array = npt.NDArray[Any]


def _estimates_probabilities(estimator: FederatedClassifier) -> bool:
    if estimator.loss not in ("logistic", "square"):
        raise AttributeError(
            f"predict_proba needs loss='logistic' or 'square', got {estimator.loss!r}; or wrap the "
            "estimator in sklearn.calibration.CalibratedClassifierCV"
        )
    return True


class FederatedClassifier(ClassifierMixin):
    """Several classes are learned one against the rest.

    Comes before a `FederatedEstimator` among the bases, which supplies the methods declared here.
    """

    loss: str
    class_weight: Mapping[Any, float] | str | None
    _validate: Any
    _weights: Any
    _fit: Any
    _decide: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (rows, columns) and labels y."""
        X, y = self._validate(X, y, reset=True)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y must hold at least two classes, got one class: {self.classes_.tolist()[0]!r}"
            )
        if self.class_weight is not None:
            factors = compute_class_weight(
                self.class_weight, classes=self.classes_, y=y, sample_weight=weights
            )
            if not (np.isfinite(factors).all() and (factors >= 0).all() and factors.any()):
                raise InputError.of(
                    "class_weight", "finite, not negative and not all zero", self.class_weight
                )
            weights = weights * factors[numbers]
        wanted = np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.array([1])
        targets = np.where(numbers[:, None] == wanted, 1.0, -1.0)  # (rows, outputs)
        self._fit(X, y, weights, targets)
        return self

    def decision_function(self, X: Any) -> Array:
        """f(x): (rows,) for two classes, positive for the second; else (rows, classes)."""
        values = self._decide(X)
        return np.asarray(values[:, 0] if len(self.classes_) == 2 else values)

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        values = self._decide(X)
        best = (values[:, 0] > 0).astype(int) if len(self.classes_) == 2 else values.argmax(axis=1)
        return np.asarray(self.classes_[best])

    @available_if(_estimates_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (rows, classes)."""
        chances = LOSSES[self.loss].probability(self._decide(X))
        if chances is None:
            raise AttributeError(f"loss {self.loss!r} estimates no probabilities")
        if len(self.classes_) == 2:
            return np.concatenate((1 - chances, chances), axis=1)
        total = chances.sum(axis=1, keepdims=True)
        even = np.full_like(chances, 1 / chances.shape[1])
        return np.asarray(np.divide(chances, total, out=even, where=total > 0))
