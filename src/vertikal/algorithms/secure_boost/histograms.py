"""Bins of columns, sums of gradients by bin, and the best split of them: pure mathematics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Bins:
    """Cells as numbers of bins (rows, columns), and the upper edge of each bin but the last."""

    codes: Array  # (rows, columns) int64
    edges: tuple[Array, ...]

    @classmethod
    def of(cls, values: Array, bins: int) -> Bins:
        """Cut each column at its quantiles."""
        shares = np.arange(1, bins) / bins
        edges = tuple(np.unique(np.quantile(column, shares, method="lower")) for column in values.T)
        codes = [np.searchsorted(e, c, side="left") for e, c in zip(edges, values.T, strict=True)]
        return cls(np.stack(codes, axis=1).reshape(len(values), len(edges)), edges)

    def groups(self, rows: Array, bins: int) -> Array:
        """Number the (column, bin) of each row: (rows, columns), from 0 below columns · bins."""
        return np.asarray(self.codes[rows] + bins * np.arange(self.codes.shape[1]))


@dataclass(frozen=True)
class Split:
    """Rows whose bin in ``column`` is at most ``bin`` go left."""

    gain: float
    column: int
    bin: int


def score(g: Array, h: Array, penalty: float) -> Array:
    """G²/(H + λ), which a leaf takes off the loss, times two."""
    return np.square(g) / (h + penalty)


def best_split(histogram: Array, penalty: float) -> Split:
    """Find the best split of a histogram (columns, bins, 2) of gradients and curvatures.

    Gain is ½·[G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)]; ties go to the first.
    """
    left = histogram.cumsum(axis=1)
    total = left[:, -1:, :]
    right = total - left
    gains = 0.5 * (
        score(left[..., 0], left[..., 1], penalty)
        + score(right[..., 0], right[..., 1], penalty)
        - score(total[..., 0], total[..., 1], penalty)
    )
    column, place = np.unravel_index(int(np.argmax(gains)), gains.shape)
    return Split(float(gains[column, place]), int(column), int(place))
