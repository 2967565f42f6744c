"""A party's own scaling, learned on its training rows and kept in its shard.

A scaling is a centre and a factor per column: x ↦ (x − centre)·factor. Sparse columns keep their
zeros in memory whatever the centre, since feature maps subtract it from their offsets instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.data.column_checks import column_bounds
from vertikal.data.tables import Block, Table

Array = npt.NDArray[Any]

Scale = Literal["standard", "minmax", "max"]
SCALES: tuple[Scale, ...] = get_args(Scale)
_HEIGHT = 4096


class Scaling(msgspec.Struct, frozen=True):
    """x ↦ (x − centre)·factor, per column."""

    centre: list[float]
    factor: list[float]

    def arrays(self) -> tuple[Array, Array]:
        return np.array(self.centre), np.array(self.factor)


def learn_scaling(table: Table, scale: str | None) -> Scaling:
    """Learn the scaling of this name for the table's columns; None leaves them as they are.

    ``standard`` mean 0 and standard deviation 1, ``minmax`` to [0, 1], ``max`` by the largest
    magnitude. A column without spread keeps its unit.
    """
    zero, one = np.zeros(table.width), np.ones(table.width)
    if scale is None:
        return Scaling(zero.tolist(), one.tolist())
    lowest, highest = np.full(table.width, np.inf), np.full(table.width, -np.inf)
    total, squares = zero.copy(), zero.copy()
    # Squares are taken about the first rows' mean, or columns far from zero would cancel.
    shift = _means(table.block(slice(0, _HEIGHT)))
    for low, high, first, second in table.each_span(_HEIGHT, partial(_moments, shift=shift)):
        lowest, highest = np.minimum(lowest, low), np.maximum(highest, high)
        total += first
        squares += second
    mean = total / table.rows
    deviation = np.sqrt(np.maximum(squares / table.rows - np.square(mean), 0))
    centre, spread = {
        "standard": (mean + shift, deviation),
        "minmax": (lowest, highest - lowest),
        "max": (zero, np.maximum(np.abs(lowest), np.abs(highest))),
    }[scale]
    # Rounding can leave a constant column a little deviation; its bounds do not lie.
    varies = (spread > 0) & ((lowest < highest) | (scale == "max"))
    factor = np.divide(1.0, spread, out=one, where=varies)
    return Scaling(centre.tolist(), factor.tolist())


def _moments(block: Block, shift: Array) -> tuple[Array, Array, Array, Array]:
    """Return the bounds of each column, and its sums and squares about ``shift``."""
    sums = (_sums(block, shift, function) for function in (np.positive, np.square))
    return *column_bounds(block), *sums  # type: ignore[return-value]


def _means(block: Block) -> Array:
    return np.zeros(block.shape[1]) if sparse.issparse(block) else np.asarray(block.mean(axis=0))


def _sums(block: Block, shift: Array, function: Callable[[Any], Any]) -> Array:
    if sparse.issparse(block):
        values = block.copy()
        values.data = function(values.data)
        return np.asarray(values.sum(axis=0)).ravel()
    return np.asarray(function(block - shift).sum(axis=0))
