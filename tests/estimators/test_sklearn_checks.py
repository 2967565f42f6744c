"""scikit-learn's own estimator checks, all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from vertikal import FDSKLClassifier, FDSKLRegressor, Stochastic


def known_to_differ(estimator: Any) -> dict[str, str]:
    """A stochastic solver draws rows: a row of weight two is drawn otherwise than two rows."""
    if estimator.solver == "exact":
        return {}
    reason = "batches are drawn by row, so weights agree with repeated rows in the mean only"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(
    [
        FDSKLClassifier(n_components=256),
        FDSKLClassifier(solver=Stochastic(n_steps=200, batch_size=32, block_size=32)),
        FDSKLRegressor(n_components=256),
    ],
    expected_failed_checks=known_to_differ,
)
def test_estimator_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([FDSKLClassifier(), FDSKLRegressor()])
def test_estimator_checks_of_the_defaults(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
