"""Coefficients over blocks of features, with decay by one lazy scalar.

FDSKL eq. (7) multiplies all earlier coefficients by 1 − γλ in each step. The expansion keeps one
factor for all of them instead, so that a step costs its own block only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SMALLEST = 1e-100


class Expansion:
    """f = Σ_j α_j φ_j; coefficients (width, outputs), zero at first."""

    def __init__(self, width: int, outputs: int) -> None:
        self._stored = np.zeros((width, outputs))
        self._factor = 1.0

    def decay(self, factor: float) -> None:
        """α ← factor · α, for all coefficients, in constant time."""
        self._factor *= factor
        if abs(self._factor) < _SMALLEST:
            self._stored *= self._factor
            self._factor = 1.0

    def add(self, columns: slice, values: Array) -> None:
        """α[columns] += values."""
        self._stored[columns] += values / self._factor

    def coefficients(self, columns: slice = slice(None)) -> Array:
        """α[columns]."""
        return np.asarray(self._stored[columns] * self._factor)
