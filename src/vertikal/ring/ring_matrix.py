"""A matrix of ring elements that comes in blocks of rows, and its products with vectors.

Here it lies in memory. Whoever has a faster place for it hands out another class with these
methods; products are exact, so it makes no difference to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.reused_memory import reused_memory
from vertikal.ring.products import times, transposed

Array: TypeAlias = npt.NDArray[Any]
Part: TypeAlias = Callable[[Any], Any] | None
"""Picks the rows and columns that a product is about, of any matrix (rows, D); None for all."""

KINDS = {"forward": times, "adjoint": transposed}
"""matrix @ vectors, and matrix.T @ vectors."""


class RingMatrix:
    """A matrix (rows, width); all rows are written before the first product."""

    def __init__(self, shape: tuple[int, int], dtype: npt.DTypeLike) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._values = reused_memory.empty(shape, dtype)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize

    @contextmanager
    def writing(self, rows: slice) -> Iterator[Array]:
        """Hand out the room of these rows, which is written to inside the block.

        Several threads may write at the same time, each its own rows.
        """
        yield self._values[rows]

    def sizes(self, kind: str, part: Part = None) -> tuple[int, int]:
        """Return the length of a vector that a product takes, and of one that it gives."""
        rows, width = self.shape if part is None else part(self._values).shape
        return (width, rows) if kind == "forward" else (rows, width)

    def product(self, kind: str, vectors: Array, part: Part = None) -> Array:
        """Multiply by vectors (size, k), as `KINDS` says: (length, k)."""
        return KINDS[kind](self._values if part is None else part(self._values), vectors)


Matrices: TypeAlias = Callable[[tuple[int, int], npt.DTypeLike], RingMatrix]
"""Makes an empty matrix of this shape and dtype."""
