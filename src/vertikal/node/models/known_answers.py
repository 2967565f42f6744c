"""Known answers: a party's own part of the prediction of invented rows, kept beside its shard.

A party draws its part of a model again from its seed at each load, so a library that draws or
multiplies differently would silently make another model of the same file. The invented rows are no
person's; the answers to them tell whether this installation still gives those that were stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Algorithm

Array = npt.NDArray[Any]

ROWS = 4
TOLERANCE = 1e-9
"""Relative to the largest answer: other processors round differently, other draws are far off."""


def invented_rows(width: int) -> Array:
    """Return (4, width) numbers between −1 and 1, the same everywhere."""
    return np.cos(np.outer(np.arange(1, ROWS + 1), np.arange(1, width + 1)))


def difference(algorithm: Algorithm[Any, Any], shard: Any, rows: Array, stored: Array) -> float:
    """Return how far today's answers are from the stored ones, in units of the largest of these."""
    now = algorithm.known_answers(shard, rows)
    if now.shape != stored.shape:
        return float("inf")
    return float(np.abs(now - stored).max(initial=0) / max(1.0, np.abs(stored).max(initial=0)))
