"""Φ = C·W: kernel columns times a whitening matrix, without ever writing Φ down."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.solvers.feature_operator import ALL, FeatureOperator

Array = npt.NDArray[Any]


class WhitenedOperator(FeatureOperator):
    """``columns`` is C (rows, width) as an operator, ``matrix`` W (width, width).

    ``gram`` is ΦᵀΦ/width on the landmarks. A preconditioner gets it for the covariance over many
    rows, since landmarks are rows drawn at random. Unequal weights change the covariance; then it
    is computed from the rows themselves, if enough of them count.
    """

    def __init__(self, columns: FeatureOperator, matrix: Array, gram: Array) -> None:
        self.rows = columns.rows
        self.width = matrix.shape[1]
        self._columns = columns
        self._matrix = matrix
        self._gram = gram

    def spread(self, coefficients: Array) -> Array:
        """Wα: the coefficients of the kernel columns themselves."""
        return np.asarray(self._matrix @ coefficients)

    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        return self._columns.forward(self._matrix[:, columns] @ coefficients, rows)

    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        return np.asarray(self._matrix[:, columns].T @ self._columns.adjoint(residuals, rows))

    def gram(self, rows: Array, weights: Array, columns: slice = ALL) -> Array | None:
        many = len(rows) >= self.width
        if many and not self._rows_are_better(weights):
            return self._of_landmarks(weights, columns)
        raw = self._columns.gram(rows, weights)
        if raw is None:
            return self._of_landmarks(weights, columns) if many else None
        part = self._matrix[:, columns]
        return np.asarray(part.T @ raw @ part)

    def _rows_are_better(self, weights: Array) -> bool:
        """True if weights differ and at least as many rows count as there are features.

        (Σw)²/Σw² is the number that count: a few rows with nearly all the weight say less about the
        covariance than the landmarks do.
        """
        total, squares = float(weights.sum()), float(np.square(weights).sum())
        return bool(weights.min() < weights.max()) and total**2 >= self.width * squares

    def _of_landmarks(self, weights: Array, columns: slice) -> Array:
        return np.array(self._gram[columns, columns]) * float(weights.sum())

    def restricted(self, rows: Array) -> FeatureOperator:
        return WhitenedOperator(self._columns.restricted(rows), self._matrix, self._gram)
