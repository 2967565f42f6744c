"""Measures of numbers that were predicted for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def rmse(predicted: Array, targets: Array, weights: Array) -> float:
    """Root of the mean square deviation."""
    return float(np.sqrt(weights @ np.square(predicted - targets) / weights.sum()))


def mae(predicted: Array, targets: Array, weights: Array) -> float:
    """Mean absolute deviation."""
    return float(weights @ np.abs(predicted - targets) / weights.sum())


def r2(predicted: Array, targets: Array, weights: Array) -> float:
    """Share of the targets' variance that the predictions explain; NaN if there is none."""
    spread = weights @ np.square(targets - weights @ targets / weights.sum())
    if not spread:
        return float("nan")
    return float(1 - weights @ np.square(predicted - targets) / spread)
