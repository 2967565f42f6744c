"""Classes as targets of ±1, one against the rest, and decisions back to classes.

The pooled classifier and the federated ones share it; it stands in the lower of their layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from vertikal.errors import InputError
from vertikal.losses.pointwise import LOSSES

Array = npt.NDArray[Any]


def _estimates_probabilities(estimator: OneAgainstRest) -> bool:
    if estimator.loss not in ("logistic", "square"):
        raise AttributeError(
            f"predict_proba needs loss='logistic' or 'square', got {estimator.loss!r}; or wrap the "
            "estimator in sklearn.calibration.CalibratedClassifierCV"
        )
    return True


class OneAgainstRest(ClassifierMixin):
    """Methods of a classifier that rest on its `_decide`: f of each row, (rows, outputs)."""

    loss: str
    classes_: Array
    _decide: Any

    def _number_classes(self, y: Array) -> Array:
        """Learn ``classes_``; the number of each row's class."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y must hold at least two classes, got one class: {self.classes_.tolist()[0]!r}"
            )
        return numbers

    def _targets(self, numbers: Array) -> Array:
        """±1, (rows, outputs): one output for two classes, else one for each."""
        wanted = np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.array([1])
        return np.where(numbers[:, None] == wanted, 1.0, -1.0)

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
