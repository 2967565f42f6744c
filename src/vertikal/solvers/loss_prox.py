"""The proximal step of a pointwise loss: the z-step of ADMM sharing.

    minimise over z   w·L(z, y) + (ρ/2)(z − c)²

elementwise. Square and smooth hinge have closed forms. The others take Newton steps inside a
bracket: the root of w·L'(z) + ρ(z − c) lies within w·max|L'|/ρ of c, the bracket shrinks with every
sign seen, and a Newton step that leaves it, or is not half the step before, goes to its middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.losses.pointwise import Loss

Array = npt.NDArray[Any]

SLOPE = 1.0
"""A bound of |L'| of every loss that takes Newton steps (logistic 1, sigmoid 1/4)."""

_STEPS = 100
_ACCURACY = 1e-13


def loss_prox(
    loss: Loss, centre: Array, targets: Array, weights: Array, rho: float, start: Array
) -> Array:
    """argmin over z of weights·L(z, targets) + ρ/2 (z − centre)², all of one shape.

    Newton's method begins at ``start``, the last round's z. For a loss that is not convex, ρ must
    exceed weights·max|L''|, so that the minimum is one.
    """
    if loss.name == "square":
        return np.asarray((2 * weights * targets + rho * centre) / (2 * weights + rho))
    if loss.name == "smooth_hinge":
        return _smooth_hinge(centre, targets, weights / rho)
    reach = SLOPE * weights / rho
    low, high = centre - reach, centre + reach
    z = np.clip(start, low, high)
    last = high - low
    for _ in range(_STEPS):
        slope = weights * loss.derivative(z, targets) + rho * (z - centre)
        high = np.where(slope > 0, z, high)
        low = np.where(slope < 0, z, low)
        step = z - slope / (weights * loss.curvature(z, targets) + rho)
        good = (step >= low) & (step <= high) & (np.abs(step - z) <= last / 2)
        step = np.where(good, step, (low + high) / 2)
        last = np.abs(step - z)
        moved = float(last.max(initial=0.0))
        z = step
        if moved <= _ACCURACY * max(1.0, float(np.abs(z).max(initial=0.0))):
            break
    return np.asarray(z)


def _smooth_hinge(centre: Array, y: Array, ratio: Array) -> Array:
    """In m = y·z the three pieces: m = m₀ + w/ρ below 0, a mean with 1 in between, m₀ above 1."""
    m = y * centre
    middle = (m + ratio) / (1 + ratio)
    return np.asarray(y * np.where(m >= 1, m, np.where(middle <= 0, m + ratio, middle)))
