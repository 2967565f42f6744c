"""A matrix of ring elements at the workers, for the products of ``values`` and ``sealed``.

Sums in the ring are exact, so every product is the same element as elsewhere.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.compute.workers.worker_group import WorkerGroup, summed
from vertikal.ring.ring_matrix import Part, RingMatrix
from vertikal.solvers.feature_operator import ALL

Array = npt.NDArray[Any]


class _Chosen:
    """Stands in for a matrix, and tells which rows and columns are picked of it."""

    def __getitem__(self, chosen: tuple[slice | Array, slice]) -> tuple[slice | Array, slice]:
        return chosen


class SpreadRingMatrix(RingMatrix):
    """The same as `RingMatrix`, at the workers."""

    def __init__(self, shape: tuple[int, int], dtype: npt.DTypeLike, group: WorkerGroup) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._group, self._layout = group, group.layout(shape[0])
        self._name = group.name("matrix")
        for worker in range(len(group)):
            there = (self._layout.count(worker), shape[1])
            group.change(worker, self._name, "begin_matrix", there, self.dtype.str)
        weakref.finalize(self, group.forget, self._name)

    @contextmanager
    def writing(self, rows: slice) -> Iterator[Array]:
        """Hand out room for these rows; what is in it at the end goes to the workers."""
        block = np.empty((rows.stop - rows.start, self.shape[1]), self.dtype)
        yield block
        for run in self._layout.runs(rows):
            part = self._group.store(block[run.start - rows.start : run.stop - rows.start])
            start = self._layout.place(run.start)
            there = slice(start, start + run.stop - run.start)
            self._group.change(
                self._layout.owner(run.start), self._name, "write_to_matrix", there, part
            )

    def sizes(self, kind: str, part: Part = None) -> tuple[int, int]:
        rows, columns = self._chosen(part)
        height = self.shape[0] if rows is None else len(rows)
        width = len(range(self.shape[1])[columns])
        return (width, height) if kind == "forward" else (height, width)

    def product(self, kind: str, vectors: Array, part: Part = None) -> Array:
        rows, columns = self._chosen(part)
        layout = self._layout
        parts: list[tuple[int, Array | None, Array | None]]
        if rows is None:
            parts = [(worker, None, None) for worker in range(len(self._group))]
        else:
            parts = [*layout.parts(rows)]
        given = self._group.shared(vectors) if kind == "forward" else None
        asked = []
        for worker, places, local in parts:
            mine = given
            if mine is None:
                mine = layout.of(vectors, worker) if places is None else vectors[places]
            request = (self._name, kind, mine, local, columns)
            asked.append((worker, places, self._group.ask(worker, "product", *request)))
        if kind == "adjoint":
            return summed([pending.answer() for _, _, pending in asked])
        result = np.empty((self.sizes(kind, part)[1], vectors.shape[1]), self.dtype)
        for worker, places, pending in asked:
            if places is None:
                layout.put_back(result, worker, pending.answer())
            else:
                result[places] = pending.answer()
        return result

    def _chosen(self, part: Part) -> tuple[Array | None, slice]:
        """Return the rows that a product is about, None for all, and its columns."""
        if part is None:
            return None, ALL
        rows, columns = part(_Chosen())
        return (None if isinstance(rows, slice) else np.asarray(rows)), columns
