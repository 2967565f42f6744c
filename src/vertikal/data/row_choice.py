"""Some rows of a table that comes in blocks, in whatever order they are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.data.sources import Source
from vertikal.errors import InputError

Array = npt.NDArray[Any]


class RowChoice:
    """Picks rows out of consecutive batches; ``rows`` may be in any order, None means all."""

    def __init__(self, rows: Array | None) -> None:
        self._order = None if rows is None else np.argsort(rows, kind="stable")
        self._sorted = None if rows is None else np.asarray(rows)[self._order]
        self._seen = 0
        self.taken = 0

    def take(self, batch: Any) -> tuple[Any, Array | None]:
        """The chosen rows of the next batch, and where they stand in the order asked for."""
        start, self._seen = self._seen, self._seen + batch.num_rows
        if self._sorted is None or self._order is None:
            self.taken += batch.num_rows
            return batch, None
        first, last = np.searchsorted(self._sorted, (start, self._seen))
        self.taken += int(last - first)
        return batch.take(self._sorted[first:last] - start), self._order[first:last]

    def check(self, source: Source) -> None:
        """Raise InputError, after the last batch, if the table does not have all rows asked for."""
        if self._sorted is not None and self.taken < len(self._sorted):
            raise InputError(
                f"table of {source.party}: {source.title} has {self._seen} rows, others were asked "
                "for; it has changed since the rows were aligned"
            )
