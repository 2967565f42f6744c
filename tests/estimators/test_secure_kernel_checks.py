"""scikit-learn's own estimator checks on the secure kernel machines, all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from vertikal import SecureKernelRidge, SecureKernelSVC


def known_to_differ(estimator: Any) -> dict[str, str]:
    """scikit-learn excuses its own SVC from these: it stops at a tolerance, not at the optimum."""
    if isinstance(estimator, SecureKernelRidge):
        return {}
    reason = "SVC stops at a tolerance, so weights and repeated rows agree to that only"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(
    [SecureKernelSVC(), SecureKernelRidge()], expected_failed_checks=known_to_differ
)
def test_estimator_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
