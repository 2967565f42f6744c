"""A party's table whose rows lie at workers: in stripes that were sent there, or read there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.compute.place import as_slice
from vertikal.compute.workers.worker_group import Pending, WorkerGroup
from vertikal.data.preparation import Preparation, Prepared
from vertikal.data.sources import Source
from vertikal.data.tables import Block, Table

Array = npt.NDArray[Any]
Result = TypeVar("Result")


class ShardedTable(Table):
    """Numeric columns of one party, at its workers."""

    def __init__(
        self,
        group: WorkerGroup,
        name: str,
        party: str,
        columns: tuple[str, ...],
        rows: int,
        *,
        is_sparse: bool = False,
    ) -> None:
        self.party, self.columns = party, columns
        self.group, self.name = group, name
        self.layout = group.layout(rows)
        self._is_sparse = is_sparse

    @classmethod
    def sent(cls, group: WorkerGroup, table: Table) -> ShardedTable:
        """Send the rows of a table in memory to the workers."""
        made = cls(
            group,
            group.name("table"),
            table.party,
            table.columns,
            table.rows,
            is_sparse=table.is_sparse,
        )
        for worker in range(len(group)):
            stripes = [group.store(table.raw(one)) for one in made.layout.stripes(worker)]
            group.change(worker, made.name, "take_table", table.party, table.columns, *stripes)
        return made

    @classmethod
    def read(
        cls, group: WorkerGroup, preparation: Preparation, source: Source, rows: Array
    ) -> Prepared:
        """Let each worker read and prepare its part of these rows of a source."""
        made = cls(group, group.name("table"), source.party, preparation.titles, len(rows))
        for worker in range(len(group)):
            chosen = rows[made.layout.numbers(worker)]
            group.change(worker, made.name, "read_table", source, preparation, chosen)
        counts: list[dict[str, int]] = [{}, {}]
        for found in group.ask_all("counts", made.name):
            for total, part in zip(counts, found, strict=True):
                for column, count in part.items():
                    total[column] = total.get(column, 0) + count
        return Prepared(made, *counts)

    @property
    def rows(self) -> int:
        return self.layout.rows

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def is_sparse(self) -> bool:
        return self._is_sparse

    def block(self, rows: slice | Array) -> Block:
        part = self.raw(rows)
        return part.astype(np.float64) if self.is_sparse else np.asarray(part, np.float64)

    def raw(self, rows: slice | Array) -> Block:
        return self._cells(rows, slice(None))

    def column(self, number: int) -> Array:
        return np.asarray(self._cells(slice(None), slice(number, number + 1)), np.float64)[:, 0]

    def _cells(self, rows: slice | Array, columns: slice) -> Block:
        chosen = np.arange(self.rows)[rows]
        asked = [
            (places, self.group.ask(worker, "block", self.name, local, columns))
            for worker, places, local in self.layout.parts(chosen)
        ]
        parts = [(places, pending.answer()) for places, pending in asked]
        if self.is_sparse:
            if not parts:
                return sparse.csr_array((0, self.width))
            order = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")
            return sparse.csr_array(sparse.vstack([part for _, part in parts], format="csr"))[order]
        if not parts:
            return np.empty((0, len(range(self.width)[columns])))
        cells = np.empty((len(chosen), parts[0][1].shape[1]), parts[0][1].dtype)
        for places, part in parts:
            cells[places] = part
        return cells

    def each_span(self, height: int, work: Callable[[Block], Result]) -> Iterator[Result]:
        """Work on one run of rows after another; whole ones at their worker, all side by side."""
        waiting: deque[Pending | Result] = deque()
        for span in self.spans(height):
            parts = list(self.layout.parts(np.arange(span.start, span.stop)))
            if len(parts) == 1:
                ((worker, _, local),) = parts
                waiting.append(self.group.ask(worker, "survey", self.name, local, work))
            else:
                waiting.append(work(self.block(span)))
            if len(waiting) > 4 * len(self.group):
                yield _taken(waiting.popleft())
        while waiting:
            yield _taken(waiting.popleft())


class SpreadElements:
    """This party's ring elements of some rows, under way at several workers."""

    def __init__(self, parts: Sequence[tuple[Array, Pending]], out: Array | None) -> None:
        self._parts, self._out = parts, out

    def result(self) -> Array:
        """Wait for the elements, (rows, elements); they may be read-only."""
        found = [(places, pending.answer()) for places, pending in self._parts]
        if len(found) == 1 and self._out is None:
            return np.asarray(found[0][1])
        shape = (sum(len(places) for places, _ in found), found[0][1].shape[1])
        elements = np.empty(shape, found[0][1].dtype) if self._out is None else self._out
        for places, part in found:
            elements[as_slice(places)] = part
        return elements


def _taken(waiting: Any) -> Any:
    return waiting.answer() if isinstance(waiting, Pending) else waiting
