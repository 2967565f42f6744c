"""How far to go along a direction: a safeguarded Newton search on convex functions of one number.

Several independent searches, one per output, run in step. Since f(α + t·d) = f + t·Φd, the search
needs no pass over the features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

GOOD = 0.5
CLOSE = 0.1
_ROUNDS = 12


def search(slope: Callable[[Array], tuple[Array, Array]], start: Array) -> Array:
    """Step lengths t (outputs,) at which each convex function has nearly levelled off.

    ``slope(t)`` returns first and second derivative at t; ``start`` is the slope at 0, not
    positive. The full step t = 1 is taken where it already leaves at most half of the slope.
    """
    steps = np.where(start < 0, 1.0, 0.0)
    low, high = np.zeros_like(steps), np.full_like(steps, np.inf)
    tolerance = GOOD
    for _ in range(_ROUNDS):
        first, second = slope(steps)
        done = np.abs(first) <= tolerance * np.abs(start)
        if done.all():
            break
        tolerance = CLOSE
        low = np.where(first < 0, steps, low)
        high = np.where(first > 0, steps, high)
        newton = steps - np.divide(first, second, out=np.full_like(first, np.inf), where=second > 0)
        widest = np.where(np.isinf(high), 4 * steps, high)
        inside = (newton > low) & (newton < widest)
        middle = np.where(np.isinf(high), 2 * steps, (low + high) / 2)
        steps = np.where(done, steps, np.where(inside, newton, middle))
    return np.asarray(steps)
