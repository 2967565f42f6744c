"""Classification and regression: the labels of both kinds of federated estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from vertikal.baselines.one_against_rest import OneAgainstRest
from vertikal.errors import InputError

Array = npt.NDArray[Any]


class FederatedClassifier(OneAgainstRest):
    """Learns several classes one against the rest, with weights of classes.

    Comes before a `FederatedEstimator` among the bases, which supplies the methods declared here.
    """

    class_weight: Mapping[Any, float] | str | None
    _validate: Any
    _weights: Any
    _fit: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, labelled_by: Any = None) -> Self:
        """Train on rows X (rows, columns) and labels y.

        ``labelled_by`` (rows, label parties) is True where a label party can label a row, by
        default everywhere.
        """
        X, y = self._validate(X, y, reset=True)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        numbers = self._number_classes(y)
        if self.class_weight is not None:
            factors = compute_class_weight(
                self.class_weight, classes=self.classes_, y=y, sample_weight=weights
            )
            if not (np.isfinite(factors).all() and (factors >= 0).all() and factors.any()):
                raise InputError.of(
                    "class_weight", "finite, not negative and not all zero", self.class_weight
                )
            weights = weights * factors[numbers]
        self._fit(X, y, weights, self._targets(numbers), **_parts(self, labelled_by))
        return self


class FederatedRegressor(RegressorMixin):
    """Learns numbers; comes before a `FederatedEstimator` as `FederatedClassifier` does."""

    _regression: ClassVar[bool] = True
    _validate: Any
    _weights: Any
    _fit: Any
    _decide: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, labelled_by: Any = None) -> Self:
        """Train on rows X (rows, columns) and targets y; ``labelled_by`` as of a classifier."""
        X, y = self._validate(X, y, reset=True)
        weights, targets = self._weights(sample_weight, X), np.asarray(y, np.float64)[:, None]
        self._fit(X, y, weights, targets, **_parts(self, labelled_by))
        return self

    def predict(self, X: Any) -> Array:
        """The target of each row."""
        return np.asarray(self._decide(X)[:, 0])


def _parts(estimator: Any, labelled_by: Any) -> dict[str, Any]:
    """Pass ``labelled_by`` on to an estimator whose label parties may each have a part."""
    if labelled_by is None:
        return {}
    if not estimator.takes_label_parts:
        raise InputError.of(
            "labelled_by",
            "None here, where every label party labels all rows; FDSKL and AVFKAM take parts",
            "a table of rows",
        )
    return {"labelled_by": labelled_by}
