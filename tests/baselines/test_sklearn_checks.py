"""scikit-learn's own estimator checks, all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from vertikal.baselines import PooledKernelClassifier


def known_to_differ(estimator: PooledKernelClassifier) -> dict[str, str]:
    """Checks that a bandwidth from rows without weights cannot pass, as in a federation."""
    if estimator.bandwidth != "mean":
        return {}
    reason = "the bandwidth is a mean over rows whatever their weights"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(
    [
        PooledKernelClassifier(n_components=256),
        PooledKernelClassifier(n_components=256, bandwidth="median"),
        PooledKernelClassifier(
            n_components=256, bandwidth="median", features="float32", kernel="matern"
        ),
    ],
    expected_failed_checks=known_to_differ,
)
def test_estimator_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
