"""A party's matrix D_m as a linear map: scaled columns, dense or sparse, and perhaps an intercept.

D_m = [(X − 1·centreᵀ)·diag(factor), 1]; the centre of sparse columns is never written into them.
Rows carry weights: inner products over rows are Σ_i w_i a_i b_i, so that a row of weight two is the
same as that row twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array = npt.NDArray[Any]


class Design:
    """D_m (rows, width) with its products; ``penalised`` says which coordinates R covers."""

    def __init__(
        self,
        values: Any,
        *,
        centre: Array | None = None,
        factor: Array | None = None,
        intercept: bool = False,
        weights: Array | None = None,
    ) -> None:
        columns = values.shape[1]
        self.rows = int(values.shape[0])
        self.is_sparse = bool(sparse.issparse(values))
        self._factor = np.ones(columns) if factor is None else factor
        shift = np.zeros(columns) if centre is None else centre
        if self.is_sparse:
            self._values = values
            self._shift = shift
        else:
            self._values = (values - shift) * self._factor
            if intercept:
                self._values = np.hstack((self._values, np.ones((self.rows, 1))))
        self._intercept = intercept
        self._weights = weights
        self.width = columns + intercept
        self.penalised = np.ones(self.width, bool)
        if intercept:
            self.penalised[-1] = False

    @property
    def heaviest(self) -> float:
        """The largest weight of a row."""
        return 1.0 if self._weights is None else float(self._weights.max())

    def forward(self, x: Array) -> Array:
        """D_m·x, (rows, outputs), for x (width, outputs)."""
        if not self.is_sparse:
            return np.asarray(self._values @ x)
        columns = self._values.shape[1]
        scaled = self._factor[:, None] * x[:columns]
        result = self._values @ scaled - self._shift @ scaled
        return np.asarray(result + x[columns] if self._intercept else result)

    def adjoint(self, u: Array) -> Array:
        """D_mᵀ·W·u, (width, outputs), for u (rows, outputs)."""
        return self._transposed(u if self._weights is None else self._weights[:, None] * u)

    def rooted(self, u: Array) -> Array:
        """√W·u."""
        return u if self._weights is None else np.sqrt(self._weights)[:, None] * u

    def rooted_adjoint(self, u: Array) -> Array:
        """D_mᵀ·√W·u."""
        return self._transposed(self.rooted(u))

    def _transposed(self, u: Array) -> Array:
        if not self.is_sparse:
            return np.asarray(self._values.T @ u)
        total = u.sum(axis=0)
        result = self._factor[:, None] * (self._values.T @ u - np.outer(self._shift, total))
        return np.asarray(np.vstack((result, total)) if self._intercept else result)

    def gram(self) -> Array:
        """D_mᵀWD_m, (width, width); sparse columns are written out for it."""
        if self.is_sparse:
            return self.adjoint(self.forward(np.eye(self.width)))
        values = self.rooted(self._values)
        return np.asarray(values.T @ values)

    def outer(self) -> tuple[Array, Array]:
        """√W·DDᵀ·√W (rows, rows) of the penalised columns, and √W times the others; dense only."""
        values = self.rooted(self._values)
        kept = values[:, self.penalised]
        return np.asarray(kept @ kept.T), np.asarray(values[:, ~self.penalised])
