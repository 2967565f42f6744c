"""scikit-learn's own estimator checks for ADMM sharing, all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from vertikal import ADMMClassifier, ADMMRegressor


# Some checks weigh one class ten million times the other: the rounds end first, and say so.
@pytest.mark.filterwarnings("ignore:not converged:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([ADMMClassifier(), ADMMRegressor()])
def test_estimator_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
