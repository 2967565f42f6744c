"""scikit-learn's own estimator checks, all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from vertikal.baselines import PooledKernelClassifier


@parametrize_with_checks(
    [
        PooledKernelClassifier(n_components=256),
        PooledKernelClassifier(n_components=256, features="float32", kernel="matern"),
    ]
)
def test_estimator_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
