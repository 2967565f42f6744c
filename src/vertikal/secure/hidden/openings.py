"""The helper's count of what it opens of one block of hidden features, and the limits on it.

A forward product C·d is one equation about the features of each of its rows, whose unknowns are as
many as there are columns: no row may take part in more of them than was agreed. A gradient Cᵀr over
s rows is one equation about each column of these rows. It counts 1/s at each of them, and no row
may come to more than a quarter. So a gradient whose rows all lie in some set adds 1 to the total of
the set's counts, which is at most a quarter of the number of its rows: whatever the batches, there
is in each column at most one equation for four unknowns.

With a `Tally` both are counted over all runs of a job, also over those that were broken off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.errors import PassesUsedUp, SecrecyError

Array = npt.NDArray[Any]

MOST_GRADIENTS = 0.25
"""Gradients that a row may take part in, each counted by one over the number of its rows."""


class Tally(Protocol):
    """Record of all that a helper opened in the runs of one job; it outlives the process."""

    def entries(self) -> list[Array]:
        """Return one entry per product, as `Openings` wrote them."""

    def add(self, entry: Array) -> None:
        """Book one more; it must be on disk when this returns."""


@dataclass
class _Span:
    """Gradients about one run of columns: of all rows, and of single ones besides."""

    everywhere: float = 0.0
    single: dict[int, float] = field(default_factory=dict)

    def of(self, rows: Array | None) -> float:
        """The largest count of any of these rows."""
        if rows is None:
            return self.everywhere + max(self.single.values(), default=0.0)
        return self.everywhere + max(self.single.get(row, 0.0) for row in rows.tolist())


class Openings:
    """The helper's count of all products of one block so far.

    ``me`` and ``label_party`` are named in errors.
    """

    def __init__(
        self,
        me: str,
        label_party: str,
        rows: int,
        most_passes: int,
        fewest_rows: int,
        tally: Tally | None = None,
    ) -> None:
        self._me, self._label_party = me, label_party
        self._most_passes, self._fewest_rows = most_passes, fewest_rows
        self._passes = np.zeros(rows, np.int64)
        self._spans: dict[tuple[int, int], _Span] = {}
        self._tally = tally
        for entry in tally.entries() if tally else ():
            if entry[0] > 0:
                self._add_forward(int(entry[0]), entry[1:] if len(entry) > 1 else None)
            else:
                first, last = int(entry[1]), int(entry[2])
                rest = entry[3:] if len(entry) > 3 else None
                self._add_gradient(-int(entry[0]), first, last, rest)

    @property
    def forward(self) -> int:
        """Forward products of the row that took part in most of them."""
        return int(self._passes.max(initial=0))

    def book(self, kind: str, outputs: int, columns: tuple[int, int], rows: Array | None) -> None:
        """Count one product of ``outputs`` vectors, or refuse it before anything is computed."""
        if rows is not None and len(np.unique(rows)) < len(rows):
            raise SecrecyError(
                f"{self._me}: {self._label_party} asked for a row twice in one product, and each "
                "answer would have noise of its own; nothing was opened"
            )
        if kind == "forward":
            self._add_forward(outputs, rows)
            if self.forward > self._most_passes:
                raise PassesUsedUp(
                    f"{self._me}: {self._label_party} asked for forward pass {self.forward} over a "
                    f"row; {self._most_passes} were agreed (max_passes), and nothing was opened"
                )
            head = [outputs]
        else:
            self._check_rows(len(self._passes) if rows is None else len(rows))
            most = self._add_gradient(outputs, *columns, rows)
            if most > MOST_GRADIENTS * (1 + 1e-9):
                raise PassesUsedUp(
                    f"{self._me}: {self._label_party} asked for so many gradients over the same "
                    "rows that their features would follow, and nothing was opened; use fewer "
                    "steps or iterations, larger batches, or more rows"
                )
            head = [-outputs, *columns]
        if self._tally is not None:
            which = np.empty(0, np.int64) if rows is None else rows
            self._tally.add(np.concatenate((head, which)).astype(np.int64))

    def _check_rows(self, count: int) -> None:
        if count < self._fewest_rows:
            raise SecrecyError(
                f"{self._me}: {self._label_party} asked for a gradient over {count} rows; fewer "
                f"than {self._fewest_rows} would show single features, and nothing was opened"
            )

    def _add_forward(self, outputs: int, rows: Array | None) -> None:
        self._passes[slice(None) if rows is None else rows] += outputs

    def _add_gradient(self, outputs: int, first: int, last: int, rows: Array | None) -> float:
        """Count a gradient; return the largest count of its rows over all spans that overlap."""
        span = self._spans.setdefault((first, last), _Span())
        if rows is None:
            span.everywhere += outputs / len(self._passes)
        else:
            for row in rows.tolist():
                span.single[row] = span.single.get(row, 0.0) + outputs / len(rows)
        return sum(
            other.of(rows)
            for (start, stop), other in self._spans.items()
            if start < last and first < stop
        )
