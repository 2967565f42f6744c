"""A party's table: its columns, dense or sparse, handed out in blocks of rows.

Dense input is kept as it came; sparse input is kept as CSR and never densified as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.errors import InputError
from vertikal.reused_memory import reused_memory

Array: TypeAlias = npt.NDArray[Any]
Result = TypeVar("Result")
Block: TypeAlias = Any
"""Some rows of a party's columns: (rows, columns), dense float64 or CSR."""


class Table:
    """Numeric columns of one party; all finite."""

    def __init__(self, party: str, columns: tuple[str, ...], values: Any) -> None:
        self.party = party
        self.columns = columns
        if sparse.issparse(values):
            self._values: Block = sparse.csr_array(values)
        else:
            self._values = np.asarray(values)
        if self._values.shape[1] != len(columns):
            raise InputError.of(
                f"table of {party}", f"{len(columns)} columns wide", self._values.shape[1]
            )

    @property
    def rows(self) -> int:
        return int(self._values.shape[0])

    @property
    def width(self) -> int:
        return int(self._values.shape[1])

    def title(self, column: int) -> str:
        """The name of a column in messages."""
        return f"column {self.columns[column]!r} of party {self.party!r}"

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self._values))

    def block(self, rows: slice | Array) -> Block:
        """These rows, in double precision: a dense array, or CSR if the table is sparse."""
        part = self._values[rows]
        if self.is_sparse:
            return part.astype(np.float64)
        if part.dtype == np.float64 and part.flags.c_contiguous:
            return part
        copy = reused_memory.empty(part.shape, np.float64)
        np.copyto(copy, part)
        return copy

    def raw(self, rows: slice) -> Block:
        """These rows as they are kept, to look at them without a copy."""
        return self._values[rows]

    def column(self, number: int) -> Array:
        """One column, dense and in double precision."""
        part = self._values[:, [number]]
        return np.asarray(part.toarray() if self.is_sparse else part, np.float64)[:, 0]

    def each_span(self, height: int, work: Callable[[Block], Result]) -> Iterator[Result]:
        """Work on the rows in runs of ``height``, one after the other.

        Where the rows lie at workers, so does the work: it must be a function that can be sent.
        """
        for span in self.spans(height):
            yield work(self.block(span))

    def spans(self, height: int) -> list[slice]:
        """The rows in runs of ``height``."""
        return [slice(i, min(i + height, self.rows)) for i in range(0, self.rows, height)]
