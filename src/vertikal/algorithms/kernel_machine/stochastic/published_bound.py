"""The number of steps that FDSKL's analysis asks for, where all its constants are known."""

from __future__ import annotations

import math

KERNEL_BOUND = 1.0
"""κ of the Gaussian kernel, and of all others here but the linear one."""
FEATURE_BOUND = 2.0
"""φ: no product of two features √2·cos is larger."""
SLOPE_BOUND = 1.0
"""M of the logistic loss, and of the smooth hinge loss."""
LOSS_AT_ZERO = math.log(2.0)
"""Mean logistic loss of f = 0, and so a bound of λ/2·‖f*‖²."""


def steps_of_theorem4(penalty: float, error: float) -> float:
    """FDSKL Theorem 4: the steps after which E|f_t(x) − f*(x)|² ≤ ``error``, with ϑ = 1.

    For the Gaussian kernel and the logistic loss all constants are known; e₁ = ‖f*‖² is at most
    2·log 2/λ. The number grows with 1/λ⁴, and says nothing for any λ that is used: with λ = 1e-4
    and an error of 0.1 it is some 1e20.
    """
    kappa, phi, M = KERNEL_BOUND, FEATURE_BOUND, SLOPE_BOUND
    first = 2 * kappa * M**2 / penalty  # G₁
    roots = math.sqrt(kappa) + math.sqrt(phi)
    second = math.sqrt(kappa) * M * roots / (2 * math.pow(penalty, 1.5))  # G₂
    B = (math.sqrt(second**2 + first) + second) ** 2
    begin = 2 * LOSS_AT_ZERO / penalty  # e₁
    return 8.0 * kappa * B * math.log(8 * kappa * begin / error) / (error * penalty)
