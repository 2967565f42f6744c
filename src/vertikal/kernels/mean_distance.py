"""The mean distance over all pairs of rows, column by column and without a pair.

It is a sum over columns, so that parties that hold different columns add up one number each.
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
Read = Callable[[slice], Block]

CELLS = 1 << 22
"""Numbers that are read at once; to sort a column takes as many as it is long."""


def mean_distance(kernel: Kernel, read: Read, rows: int, factor: Array) -> float:
    """Share of some columns in the mean distance over all pairs of two different rows.

    Of squared distances that is twice the variance Σ(x − mean)²/(n − 1), summed over the columns;
    of absolute ones it is Gini's mean difference, summed likewise. For the column (1, 2, 4) the
    pairs differ by 1, 2 and 3: the mean of the squares 1, 4 and 9 is 14/3, twice the variance
    7/3, and the mean of the differences themselves is 2.

    ``read`` brings rows of these columns; ``factor`` (columns,) is their scaling.
    """
    if rows < 2:
        raise InputError.of("bandwidth", "a number where there are fewer than two rows", "mean")
    if len(factor) == 0:
        return 0.0
    if kernel.squares_distances:
        return float(2 / (rows - 1) * (_squared_deviations(read, rows) @ np.square(factor)))
    pairs = rows * (rows - 1) / 2
    return float(_absolute_differences(read, rows) @ np.abs(factor) / pairs)


def checked_mean(mean: float) -> float:
    """Return the mean distance, or refuse it if all rows are equal."""
    if not mean > 0:
        raise InputError(
            "bandwidth: 'mean' needs rows that differ, but all are equal, or closer than fixed "
            "point can tell; scale the columns or give a number"
        )
    return mean


def _squared_deviations(read: Read, rows: int) -> Array:
    """Σ (x − mean)² of each column, (columns,)."""
    first = read(slice(0, 1))
    spans = _spans(rows, first.shape[1])
    if sparse.issparse(first):
        sums = [np.asarray(read(span).sum(axis=0)).ravel() for span in spans]
        mean = np.sum(sums, axis=0) / rows
        total: Array = rows * np.square(mean)
        for span in spans:
            block = read(span)
            # Σ (x − m)² is m² for each zero, which is above, and x(x − 2m) more for each other.
            gains = block.data * (block.data - 2 * mean[block.indices])
            total = total + np.bincount(block.indices, gains, len(mean))
        return np.asarray(np.maximum(total, 0.0))
    # About the first row, so that a column that does not vary deviates by exactly nothing.
    shift = np.asarray(first[0])
    mean = sum((read(span) - shift).sum(axis=0) for span in spans) / rows
    return np.asarray(sum(np.square(read(span) - shift - mean).sum(axis=0) for span in spans))


def _absolute_differences(read: Read, rows: int) -> Array:
    """Σ |x − x'| over all pairs of each column, (columns,), by sorting the column."""
    first = read(slice(0, 1))
    width = int(first.shape[1])
    if sparse.issparse(first):
        return _sparse_differences(read(slice(0, rows)).tocsc())
    below = np.arange(1.0, rows)
    # A gap between neighbours counts in each pair of a row below it and a row above it.
    pairs_across = below * (rows - below)
    total = np.empty(width)
    group = max(1, CELLS // rows)
    for start in range(0, width, group):
        columns = slice(start, start + group)
        parts = [read(span)[:, columns] for span in _spans(rows, width)]
        values = np.sort(np.concatenate(parts), axis=0)
        total[columns] = pairs_across @ np.diff(values, axis=0)
    return total


def _sparse_differences(columns: Any) -> Array:
    """Do the same for CSC columns: Σ x·(2·rank − n + 1), in which zeros need no rank."""
    rows, width = columns.shape
    stored = np.diff(columns.indptr)
    column = np.repeat(np.arange(width), stored)
    values = columns.data[np.lexsort((columns.data, column))]
    rank = np.arange(len(values)) - np.repeat(columns.indptr[:-1], stored)
    # The zeros that are not stored lie between the negative and the positive numbers.
    rank = np.where(values > 0, rank + (rows - stored)[column], rank)
    return np.maximum(np.bincount(column, values * (2.0 * rank - rows + 1), width), 0.0)


def _spans(rows: int, width: int) -> list[slice]:
    height = max(1, CELLS // width)
    return [slice(i, min(i + height, rows)) for i in range(0, rows, height)]
