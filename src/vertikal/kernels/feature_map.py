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

DECODED = 1 << 22
"""Features that a product decodes at a time."""


class FeatureMap(ABC):
    """Features of one block of directions."""

    ring: Ring
    width: int  # features of this block
    kept_dtype: np.dtype[Any] | None = None  # of what `keep` returns; None: ring elements

    @property
    def elements(self) -> int:
        """Ring elements of a row; as many as it has features, unless a map makes more of each."""
        return self.width

    @abstractmethod
    def local(self, block: Block, out: Array | None = None) -> Array:
        """This party's part: ring elements (rows, elements), C-ordered, in ``out`` if given."""

    def add_local(self, block: Block, out: Array) -> None:
        """Add this party's part to what is in ``out``, such as pads."""
        out += self.local(block)

    @abstractmethod
    def decode(self, total: Array, dtype: npt.DTypeLike = np.float32) -> Array:
        """Features of summed ring elements (rows, elements).

        Where each element is one feature, ``total`` may be some of the columns.
        """

    def keep(self, total: Array) -> Array:
        """The form in which a label party keeps summed ring elements; `decode` reads it."""
        return total

    def forward(self, total: Array, coefficients: Array) -> Array:
        """decode(total) @ coefficients: (width, outputs) → (rows, outputs)."""
        single = coefficients.astype(np.float32)
        values = np.empty((len(total), single.shape[1]), np.float32)
        for rows in self._decoded_at_a_time(len(total)):
            np.matmul(self.decode(total[rows]), single, out=values[rows])
        return values

    def adjoint(self, total: Array, residuals: Array) -> Array:
        """decode(total).T @ residuals: (rows, outputs) → (width, outputs)."""
        single = residuals.astype(np.float32)
        spans = self._decoded_at_a_time(len(total))
        return np.asarray(sum(self.decode(total[rows]).T @ single[rows] for rows in spans))

    def _decoded_at_a_time(self, rows: int) -> list[slice]:
        """Cut rows into spans whose features are few enough to be written down; at least one."""
        height = max(16, DECODED // max(1, self.width))
        return [slice(start, start + height) for start in range(0, max(1, rows), height)]
