"""The helper's count of what it opens of one block of hidden features, and the limits on it.

Bits are counted. Noise of the helper's leaves b bits of full scale of every number that it opens
(`private_product`), so that no question, however it is made, is answered by more than b bits.

A forward product C·d opens one number about each of its rows: `Limits` says how many, of how many
bits, any row may come to. The row's D phases are what it is made of, whether C holds their cosines
alone or their sines too: D numbers are as many equations as unknowns, also where a row has 2D
features. So the limit goes by phases.

A gradient Cᵀr over s rows opens one number about each column of these rows. Its bits count 1/s at
each of them, and no row may come to more than two for any direction, whose cosines and sines are
counted together. So a gradient whose rows all lie in some set adds its bits to the total of the
set's counts, which is at most two for each of its rows: whatever the batches, all gradients
together open at most a quarter of a column of phases of eight bits. No direction may come to more
gradients than was agreed either, which is as many as the solver takes.

That is all that holds against a label party that deviates: the helper does not see r, which may
have all of its weight on one row. Each gradient is then that row's features, to b bits each.

With a `Tally` all is counted over all runs of a job, also over those that were broken off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.errors import PassesUsedUp, SecrecyError

Array = npt.NDArray[Any]

OPENED_BITS = 28
"""Bits of full scale that A learns of a product, where nothing less was agreed."""

GRADIENT_BITS_PER_ROW = 2
"""Bits of gradients per direction and row, each gradient's counted by one over its number of rows.

With cosine and sine a direction has two gradients in each pass."""


@dataclass(frozen=True)
class OpenedBits:
    """Bits that a label party may come to hold, by the numbers of which they are made."""

    values: int
    """Numbers about one row: products with its features."""
    value_bits: int
    gradients: int = 0
    """Numbers about one direction: sums over rows of the features under it."""
    gradient_bits: int = 0

    @property
    def about_a_row(self) -> int:
        """Bits about any one row, from a label party that follows the protocol."""
        return self.values * self.value_bits

    @property
    def about_a_direction(self) -> int:
        """Bits about all features under one direction together.

        A label party that deviates can spend them on rows of its choice: see `rows_at_risk`.
        """
        return self.gradients * self.gradient_bits

    @property
    def rows_at_risk(self) -> int:
        """Rows whose features a label party that deviates can have, to ``gradient_bits`` each."""
        return self.gradients


@dataclass(frozen=True)
class Limits:
    """Limits on what is opened of one block, on which all roles agree before the run."""

    most_passes: int
    """Forward products that any one row may take part in."""
    fewest_rows: int
    """Distinct rows that a gradient must be about."""
    most_gradients: int
    """Gradients about any one direction, those of its cosines and of its sines together."""
    value_bits: int = OPENED_BITS
    """Bits of full scale that a forward product opens; the rest is the helper's noise."""
    gradient_bits: int = OPENED_BITS
    """Bits of full scale that a gradient opens."""
    gradient_bits_per_row: int = GRADIENT_BITS_PER_ROW

    def at_most(self, rows: int | None = None) -> OpenedBits:
        """Say how much may be opened of a block of ``rows`` rows; None: of however many."""
        gradients = self.most_gradients
        if rows is not None:
            gradients = min(gradients, rows * self.gradient_bits_per_row // self.gradient_bits)
        return OpenedBits(self.most_passes, self.value_bits, gradients, self.gradient_bits)


class Tally(Protocol):
    """Record of all that a helper opened in the runs of one job; it outlives the process."""

    def entries(self) -> list[Array]:
        """Return one entry per product, as `Openings` wrote them."""

    def add(self, entry: Array) -> None:
        """Book one more; it must be on disk when this returns."""


@dataclass
class _Span:
    """Gradients about one run of columns; their bits at all rows, and at single ones besides."""

    gradients: int = 0
    everywhere: float = 0.0
    single: dict[int, float] = field(default_factory=dict)

    def of(self, rows: Array | None) -> float:
        """The largest count of any of these rows."""
        if rows is None:
            return self.everywhere + max(self.single.values(), default=0.0)
        return self.everywhere + max(self.single.get(row, 0.0) for row in rows.tolist())


class Openings:
    """The helper's count of all products of one block so far.

    ``me`` and ``label_party`` are named in errors. ``directions`` are the columns that are about
    different phases: the next as many are about the same ones again. None: all columns.
    """

    def __init__(
        self,
        me: str,
        label_party: str,
        rows: int,
        limits: Limits,
        tally: Tally | None = None,
        directions: int | None = None,
    ) -> None:
        self._me, self._label_party = me, label_party
        self._limits = limits
        self._directions = directions
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
            if self.forward > self._limits.most_passes:
                raise PassesUsedUp(
                    f"{self._me}: {self._label_party} asked for forward pass {self.forward} over a "
                    f"row; {self._limits.most_passes} were agreed (max_passes), and nothing was "
                    "opened"
                )
            head = [outputs]
        else:
            self._check_rows(len(self._passes) if rows is None else len(rows))
            gradients, bits = self._add_gradient(outputs, *columns, rows)
            most = self._limits.gradient_bits_per_row
            if bits > most * (1 + 1e-9):
                raise PassesUsedUp(
                    f"{self._me}: {self._label_party} asked for so many gradients over the same "
                    f"rows that they would open more than {most} bits of each feature of each "
                    "row, and nothing was opened; use fewer steps or iterations, fewer "
                    "gradient_bits, larger batches, or more rows"
                )
            if gradients > self._limits.most_gradients:
                raise PassesUsedUp(
                    f"{self._me}: {self._label_party} asked for gradient {gradients} about a "
                    f"direction; {self._limits.most_gradients} were agreed, as many as its solver "
                    "may take, and nothing was opened"
                )
            head = [-outputs, *columns]
        if self._tally is not None:
            which = np.empty(0, np.int64) if rows is None else rows
            self._tally.add(np.concatenate((head, which)).astype(np.int64))

    def _check_rows(self, count: int) -> None:
        if count < self._limits.fewest_rows:
            raise SecrecyError(
                f"{self._me}: {self._label_party} asked for a gradient over {count} rows; "
                f"fewer than {self._limits.fewest_rows} would show single features, and nothing "
                "was opened"
            )

    def _add_forward(self, outputs: int, rows: Array | None) -> None:
        self._passes[slice(None) if rows is None else rows] += outputs

    def _add_gradient(
        self, outputs: int, first: int, last: int, rows: Array | None
    ) -> tuple[int, float]:
        """Count a gradient about these columns; return the most that any of their directions has.

        That is the number of gradients, and the largest count of bits of any of these rows, both
        summed over all spans that overlap.
        """
        spans = self._spans_of(first, last)
        bits = outputs * self._limits.gradient_bits
        for where in spans:
            span = self._spans.setdefault(where, _Span())
            span.gradients += outputs
            if rows is None:
                span.everywhere += bits / len(self._passes)
            else:
                for row in rows.tolist():
                    span.single[row] = span.single.get(row, 0.0) + bits / len(rows)
        counts = []
        for start, stop in spans:
            found = [one for (a, b), one in self._spans.items() if a < stop and start < b]
            counts.append((sum(s.gradients for s in found), sum(s.of(rows) for s in found)))
        return max(gradients for gradients, _ in counts), max(bits for _, bits in counts)

    def _spans_of(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the directions of a run of columns; a direction of two of them is there twice.

        With 10 directions columns 8 to 22 are directions 8 to 10, 0 to 10 and 0 to 2.
        """
        width = self._directions or last
        return [
            (max(first - start, 0), min(last - start, width))
            for start in range(first // width * width, last, width)
        ]
