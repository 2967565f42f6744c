"""A matrix that lies in memory, as an operator: columns as they are, or features of one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.solvers.feature_operator import ALL, FeatureOperator

Array = npt.NDArray[Any]


class MatrixOperator(FeatureOperator):
    """A matrix (rows, width), dense or sparse, and a column of ones if ``intercept``."""

    def __init__(self, values: Any, *, intercept: bool = False) -> None:
        ones = np.ones((values.shape[0], int(intercept)))
        if sparse.issparse(values):
            self._values: Any = sparse.csr_array(sparse.hstack((values, ones)))
        else:
            self._values = np.hstack((values, ones))
        self.rows, self.width = self._values.shape

    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        return np.asarray(self._chosen(rows)[:, columns] @ coefficients)

    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        return np.asarray(self._chosen(rows)[:, columns].T @ residuals)

    def gram(self, rows: Array, weights: Array, columns: slice = ALL) -> Array | None:
        if sparse.issparse(self._values):
            return None
        chosen = self._values[rows][:, columns]
        return np.asarray(chosen.T @ (weights[:, None] * chosen))

    def _chosen(self, rows: Array | None) -> Any:
        return self._values if rows is None else self._values[rows]
