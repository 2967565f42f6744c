"""Gradients with all their weight on a few rows: an attack of a label party that deviates.

A gradient is Cᵀr for a vector r that the helper does not see. A label party that follows the
program puts a residual at every row. One that does not puts 1 at one row and a large B at another,
and zeros elsewhere: the product cos θ + B·cos θ' holds both, and since a phase of k bits has only
2^(k−1) + 1 different cosines, both can be read off if it has digits enough.

With B = 10 and cosines from {−1, 0, 1}, the product 10·1 + (−1) = 9 can only be that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def weights_of(count: int, phase_bits: int = 8) -> Array:
    """Return weights by which the cosines of ``count`` rows stay apart in one sum, mostly.

    Greater ones would tell them apart better if cosines were not rounded themselves.
    """
    return np.power(2.0 ** (phase_bits - 1) + 1, np.arange(count))


def residuals_on(rows: int, chosen: Sequence[int], weights: Array) -> Array:
    """Return residuals (rows, 1) with these weights at the chosen rows, to ask for a gradient."""
    residuals = np.zeros((rows, 1))
    residuals[list(chosen), 0] = weights
    return residuals


def read_rows(gradient: Array, weights: Array, phase_bits: int = 8) -> Array:
    """Read the cosines (len(weights), D) of the chosen rows from their gradient (D,)."""
    possible = np.cos(np.arange(2 ** (phase_bits - 1) + 1) * 2 * np.pi / 2**phase_bits)
    guesses = np.array(list(combinations(possible, repeat=len(weights))))
    sums = guesses @ weights
    order = np.argsort(sums)
    place = np.clip(np.searchsorted(sums[order], gradient), 1, len(sums) - 1)
    low, high = order[place - 1], order[place]
    best = np.where(np.abs(sums[low] - gradient) <= np.abs(sums[high] - gradient), low, high)
    return np.asarray(guesses[best].T)
