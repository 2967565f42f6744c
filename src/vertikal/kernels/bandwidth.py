"""The median distance of a few pairs of rows, for ``bandwidth="median"``.

The parties agree on pairs by a public seed, add up their shares of each pair's distance by a secure
sum, and the label party, which sees every total, takes the weighted median. The functions here are
the arithmetic; the mean, for which nobody needs pairs, is in `mean_distance`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.errors import InputError
from vertikal.kernels.feature_map import Block
from vertikal.kernels.spectral import Kernel

Array = npt.NDArray[Any]

PAIRS = 2000
_CELLS = 1 << 21


def sample_pairs(rows: int, seed: int, pairs: int = PAIRS) -> Array:
    """Pairs of row numbers (pairs, 2): all while they are few, else a public random sample."""
    if rows < 2:
        raise InputError.of("bandwidth", "a number where there are fewer than two rows", "median")
    if rows * (rows - 1) // 2 <= pairs:
        return np.stack(np.triu_indices(rows, 1), axis=1)
    generator = np.random.default_rng(seed)
    first = generator.integers(0, rows, pairs)
    second = (first + generator.integers(1, rows, pairs)) % rows
    return np.stack((first, second), axis=1)


def pair_distances(
    kernel: Kernel, read: Callable[[Array], Block], factor: Array, pairs: Array
) -> Array:
    """Share of some columns in the distance of each pair, (pairs,).

    ``read`` brings rows of these columns by number; ``factor`` (columns,) is their scaling.
    """
    shares = np.empty(len(pairs))
    height = max(1, _CELLS // max(1, len(factor)))
    for start in range(0, len(pairs), height):
        some = pairs[start : start + height]
        gap = read(some[:, 0]) - read(some[:, 1])
        dense = gap.toarray() if sparse.issparse(gap) else gap
        shares[start : start + height] = kernel.distances(dense * factor)
    return shares


def weighted_median(distances: Array, weights: Array) -> float:
    """The median of the distances that are not zero, each counted with its weight.

    Copies of a row add pairs at distance zero; leaving them out makes a row of weight two and the
    same row twice give one answer.
    """
    use = (weights > 0) & (distances > 0)
    if not use.any():
        raise InputError(
            "bandwidth: 'median' needs rows that differ, but all sampled pairs are equal, or "
            "closer than fixed point can tell; scale the columns or give a number"
        )
    order = np.argsort(distances[use], kind="stable")
    values, mass = distances[use][order], np.cumsum(weights[use][order])
    return float(values[np.searchsorted(mass, mass[-1] / 2)])
