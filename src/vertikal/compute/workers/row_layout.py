"""Layout of rows over workers: stripes of neighbouring rows go round the workers.

Messages between parties have rows in their order, whoever has workers. So neighbouring stripes lie
at different workers, and all of them work on what is sent next. With stripes of 4 rows, 10 rows and
2 workers:

    worker 0   rows 0 1 2 3 8 9
    worker 1   rows 4 5 6 7
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.compute.open_operator import CHUNK

Array = npt.NDArray[Any]

WIDEST = 4 * CHUNK
"""Rows of a stripe, at most. Whole chunks, so that a worker multiplies what a thread would."""


@dataclass(frozen=True)
class RowLayout:
    """So many rows over so many workers."""

    rows: int
    workers: int

    @property
    def stripe(self) -> int:
        """Rows of a stripe: fewer where there are not enough for all workers."""
        wanted = -(-self.rows // self.workers)
        return min(WIDEST, max(CHUNK, -(-wanted // CHUNK) * CHUNK))

    def count(self, worker: int) -> int:
        """Count the rows of a worker."""
        return sum(one.stop - one.start for one in self.stripes(worker))

    def stripes(self, worker: int) -> Iterator[slice]:
        """Yield the stripes of a worker, in the order in which it keeps them."""
        height = self.stripe
        for start in range(worker * height, self.rows, self.workers * height):
            yield slice(start, min(start + height, self.rows))

    def numbers(self, worker: int) -> Array:
        """Return the numbers of a worker's rows, in the order in which it keeps them."""
        parts = [np.arange(one.start, one.stop) for one in self.stripes(worker)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def parts(self, rows: Array) -> Iterator[tuple[int, Array, Array]]:
        """Yield (worker, positions among ``rows``, their places at the worker) for those it has."""
        stripes, within = np.divmod(np.asarray(rows, np.int64), self.stripe)
        rounds, owners = np.divmod(stripes, self.workers)
        places = rounds * self.stripe + within
        for worker in np.unique(owners):
            chosen = np.flatnonzero(owners == worker)
            yield int(worker), chosen, places[chosen]

    def owner(self, row: int) -> int:
        """Return the worker of a row."""
        return row // self.stripe % self.workers

    def runs(self, rows: slice, *others: RowLayout) -> Iterator[slice]:
        """Cut neighbouring rows into runs that lie at one worker, here and in other layouts."""
        start = rows.start
        while start < rows.stop:
            ends = [(start // one.stripe + 1) * one.stripe for one in (self, *others)]
            stop = min(rows.stop, *ends)
            yield slice(start, stop)
            start = stop

    def place(self, row: int) -> int:
        """Return the place of a row at its worker."""
        stripe, within = divmod(row, self.stripe)
        return stripe // self.workers * self.stripe + within

    def of(self, values: Array, worker: int) -> Array:
        """Return what a worker gets of values (rows, …) of all rows."""
        parts = [values[one] for one in self.stripes(worker)]
        return np.concatenate(parts) if parts else values[:0]

    def put_back(self, values: Array, worker: int, part: Array) -> None:
        """Write what a worker has of all rows to its place in ``values``."""
        start = 0
        for one in self.stripes(worker):
            size = one.stop - one.start
            values[one] = part[start : start + size]
            start += size
