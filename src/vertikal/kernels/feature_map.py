"""A feature map: a local part at each party, and a decoding of their sum.

Each party computes `local` numbers of its own columns, as ring elements; the elements are summed
over the parties by a secure sum; the receiver `decode`s the total to features whose inner products
approximate the kernel. `forward` and `adjoint` multiply by the decoded features without writing
them down, where a map knows a shorter way. Nothing above this room knows which map it uses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.ring.integers import Ring

Array: TypeAlias = npt.NDArray[Any]
Block: TypeAlias = Any
"""Some rows of a party's columns: (rows, columns), dense float64 or CSR."""


class FeatureMap(ABC):
    """Features of one block of directions."""

    ring: Ring
    width: int  # features of this block
    kept_dtype: np.dtype[Any] | None = None  # of what `keep` returns; None: ring elements

    @abstractmethod
    def local(self, block: Block, out: Array | None = None) -> Array:
        """This party's part: ring elements (rows, width), C-ordered, in ``out`` if given."""

    @abstractmethod
    def decode(self, total: Array, dtype: npt.DTypeLike = np.float32) -> Array:
        """Features of summed ring elements (rows, some or all of the block's columns)."""

    def keep(self, total: Array) -> Array:
        """The form in which a label party keeps summed ring elements; `decode` reads it."""
        return total

    def forward(self, total: Array, coefficients: Array) -> Array:
        """decode(total) @ coefficients: (rows, width) × (width, outputs) → (rows, outputs)."""
        return np.asarray(self.decode(total) @ coefficients.astype(np.float32))

    def adjoint(self, total: Array, residuals: Array) -> Array:
        """decode(total).T @ residuals: (rows, outputs) → (width, outputs)."""
        return np.asarray(self.decode(total).T @ residuals.astype(np.float32))
