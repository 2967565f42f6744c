"""Φ, the matrix of features, as an operator: solvers multiply by it and never see an entry.

Who holds the entries, and in which form, is the operator's business: `compute` has those of a party
that holds the phases, `algorithms.kernel_machine.values` the one whose phases nobody sees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy.typing as npt

from vertikal.solvers.objective import Objective

Array: TypeAlias = npt.NDArray[Any]

ALL = slice(None)


class FeatureOperator(ABC):
    """Φ of shape (rows, width)."""

    rows: int
    width: int
    most_forward: int | None = None
    """Forward products with one vector that it still offers; None: any number."""

    @abstractmethod
    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        """Φ[rows, columns] @ coefficients: (columns, outputs) → (rows, outputs), float64."""

    @abstractmethod
    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        """Φ[rows, columns].T @ residuals: (rows, outputs) → (columns, outputs), float64."""

    def gram(self, rows: Array, weights: Array, columns: slice = ALL) -> Array | None:
        """Φᵀ·diag(weights)·Φ over some rows and columns, to precondition; None if not offered."""
        return None

    def inverse(
        self, rows: Array, weights: Array, stiffness: float, ridge: float
    ) -> Callable[[Array], Array] | None:
        """Return g ↦ (κ·ΦᵀWΦ + λI)⁻¹g over some rows, κ the stiffness and λ the ridge.

        None where the operator has no shorter way to it than its Gram matrix.
        """
        return None

    def beside(self, objective: Objective) -> tuple[FeatureOperator, Objective]:
        """Return Φ and R for a solver whose predictions stay where the products are.

        They are what `forward` of the one returns and the other takes: arrays, unless an operator
        has a better place for them.
        """
        return self, objective

    def restricted(self, rows: Array) -> FeatureOperator:
        """Φ[rows] as an operator, for several products with the same rows.

        Label parties that share a problem call this in step; the products need nobody else.
        """
        return RestrictedOperator(self, rows)


class RestrictedOperator(FeatureOperator):
    """Some rows of another operator."""

    def __init__(self, whole: FeatureOperator, chosen: Array) -> None:
        self.rows = len(chosen)
        self.width = whole.width
        self._whole = whole
        self._chosen = chosen

    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        return self._whole.forward(coefficients, self._numbers(rows), columns)

    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        return self._whole.adjoint(residuals, self._numbers(rows), columns)

    def gram(self, rows: Array, weights: Array, columns: slice = ALL) -> Array | None:
        return self._whole.gram(self._numbers(rows), weights, columns)

    def _numbers(self, rows: Array | None) -> Array:
        return self._chosen if rows is None else self._chosen[rows]
