"""Φ at the workers: each holds the ring elements of its rows, and multiplies by their features.

A solver gets vectors of numpy, as from any operator: a forward product has the rows it asked for,
an adjoint product and a Gram matrix are sums over the workers. With `beside` predictions stay at
the workers as well.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.compute import open_operator
from vertikal.compute.element_store import ElementStore
from vertikal.compute.open_operator import OpenOperator
from vertikal.compute.workers.resident_rows import (
    SolverSession,
    SpreadObjective,
    SpreadResiduals,
    SpreadRows,
)
from vertikal.compute.workers.worker_group import Pending, WorkerGroup, answers, summed
from vertikal.kernels.feature_map import FeatureMap
from vertikal.solvers.feature_operator import ALL, FeatureOperator
from vertikal.solvers.objective import Objective, RowObjective

Array = npt.NDArray[Any]


class SpreadStore(ElementStore):
    """Summed ring elements of all rows, on their way to the workers.

    A copy stays in Ray's object store at this process's node, for a worker that takes another's
    place; Ray moves it to the disk where the store is full.
    """

    def __init__(self, group: WorkerGroup, feature_map: FeatureMap, rows: int) -> None:
        self.rows = rows
        self.group, self.layout = group, group.layout(rows)
        self.name = group.name("elements")
        self._map = feature_map
        self._dtype = np.dtype(feature_map.kept_dtype or feature_map.ring.dtype)
        for worker in range(len(group)):
            shape = (self.layout.count(worker), feature_map.elements)
            group.change(worker, self.name, "begin_elements", shape, self._dtype.str)
        weakref.finalize(self, group.forget, self.name)

    @property
    def cached(self) -> Array:  # type: ignore[override]
        """All elements, brought here."""
        values = np.empty((self.rows, self._map.elements), self._dtype)
        for worker, part in enumerate(self.group.ask_all("elements", self.name)):
            self.layout.put_back(values, worker, part)
        return values

    def room(self, where: slice) -> Any:
        """Hand out the place of these rows at the workers, for sums that are taken there."""
        return SpreadRoom(self, where) if self._map.kept_dtype is None else None

    def add(self, where: slice, total: Any) -> Any:
        if isinstance(total, SpreadTotal):
            total.keep()
            return total
        kept = self._map.keep(total)
        for worker, places, local in self.layout.parts(np.arange(where.start, where.stop)):
            part = kept[places[0] : places[-1] + 1] if len(places) == len(kept) else kept[places]
            # The places of neighbouring rows at one worker are neighbours, too.
            stored = self.group.store(part)
            self.group.change(worker, self.name, "add_elements", int(local[0]), stored)
        return kept

    def restore(self, where: slice) -> Array:
        return np.empty((where.stop - where.start, self._map.elements), self._dtype)

    def restored(self, where: slice, kept: Array) -> None:
        for worker, places, local in self.layout.parts(np.arange(where.start, where.stop)):
            stored = self.group.store(kept[places])
            self.group.change(worker, self.name, "add_elements", int(local[0]), stored)


@dataclass(frozen=True)
class SpreadRoom:
    """The place of some rows in a store at the workers."""

    store: SpreadStore
    where: slice


class SpreadTotal:
    """Sums of ring elements that workers took and hold in their place in a store.

    ``parts`` are (rows, request, its answer), an answer being the elements or None.
    """

    def __init__(
        self, room: SpreadRoom, parts: Sequence[tuple[slice, Pending, Array | None]]
    ) -> None:
        self._store, self._where = room.store, room.where
        self._parts = parts

    def keep(self) -> None:
        """Store copies for workers that take a lost one's place."""
        store = self._store
        for rows, pending, elements in self._parts:
            copy = None if elements is None else store.group.store(elements)
            start = store.layout.place(rows.start)
            store.group.has_changed(pending, store.name, "add_elements", start, copy)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Bring the sums here."""
        store, found = self._store, []
        for rows, pending, elements in self._parts:
            if elements is not None:
                found.append(elements)
                continue
            start = store.layout.place(rows.start)
            there = slice(start, start + rows.stop - rows.start)
            asked = store.group.ask(pending.number, "elements", store.name, there)
            found.append(asked.answer())
        return np.concatenate(found)


class SpreadOperator(OpenOperator):
    """Φ decoded from ring elements at the workers."""

    def __init__(self, feature_map: FeatureMap, store: SpreadStore) -> None:
        self.rows, self.width = store.rows, feature_map.width
        self._map, self._store = feature_map, store
        self._group, self._layout = store.group, store.layout
        self.name = self._group.name("operator")
        map_name = f"{self.name}, its map"
        stored = self._group.store(feature_map)
        precise = self.rows * self.width <= open_operator.PRECISE
        for worker in range(len(self._group)):
            self._group.change(worker, map_name, "keep", stored)
            self._group.change(worker, self.name, "begin_operator", map_name, store.name, precise)
        weakref.finalize(self, self._group.forget, self.name, map_name)

    @property
    def cached(self) -> Array:  # type: ignore[override]
        """All elements, brought here."""
        return self._store.cached

    def with_elements(self, elements: Array) -> SpreadOperator:
        store = SpreadStore(self._group, self._map, len(elements))
        store.restored(slice(0, len(elements)), elements)
        return SpreadOperator(self._map, store)

    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        size = self.rows if rows is None else len(rows)
        values = np.empty((size, coefficients.shape[1]))
        given = self._group.shared(coefficients)
        if rows is None:
            found = self._group.ask_all("forward", self.name, given, None, columns)
            for worker, part in enumerate(found):
                self._layout.put_back(values, worker, part)
            return values
        asked = [
            (places, self._group.ask(worker, "forward", self.name, given, local, columns))
            for worker, places, local in self._layout.parts(rows)
        ]
        for places, pending in asked:
            values[places] = pending.answer()
        return values

    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        group = self._group
        parts: list[tuple[int, Array | None, Array]]
        if rows is None:
            parts = [
                (worker, None, self._layout.of(residuals, worker)) for worker in range(len(group))
            ]
        else:
            parts = [
                (worker, local, residuals[places])
                for worker, places, local in self._layout.parts(rows)
            ]
        return self._sum(
            [
                group.ask(worker, "adjoint", self.name, part, local, columns)
                for worker, local, part in parts
            ],
            (len(range(self.width)[columns]), residuals.shape[1]),
        )

    def gram(self, rows: Array, weights: Array, columns: slice = ALL) -> Array:
        width = len(range(self.width)[columns])
        return self._sum(
            [
                self._group.ask(worker, "gram", self.name, local, weights[places], columns)
                for worker, places, local in self._layout.parts(rows)
            ],
            (width, width),
        )

    def restricted(self, rows: Array) -> FeatureOperator:
        return FeatureOperator.restricted(self, rows)

    def beside(self, objective: Objective) -> tuple[FeatureOperator, Objective]:
        if not isinstance(objective, RowObjective):
            return self, objective
        session = SolverSession(self._group, self._layout)
        return _BesideOperator(self, session), SpreadObjective(objective, session)

    @staticmethod
    def _sum(asked: list[Any], shape: tuple[int, int]) -> Array:
        return summed(answers(asked)) if asked else np.zeros(shape)


class _BesideOperator(FeatureOperator):
    """The same Φ for a solver whose predictions stay at the workers."""

    def __init__(self, whole: SpreadOperator, session: SolverSession) -> None:
        self.rows, self.width = whole.rows, whole.width
        self._whole, self._session = whole, session
        self.gram = whole.gram  # type: ignore[method-assign]

    def forward(self, coefficients: Array, rows: Array | None = None, columns: slice = ALL) -> Any:
        if rows is not None or columns != ALL:
            return self._whole.forward(coefficients, rows, columns)
        session, name = self._session, self._session.new()
        given = session.group.shared(coefficients)
        for worker in range(len(session.group)):
            session.group.change(
                worker, session.name, "forward_rows", self._whole.name, str(name), given
            )
        shape = (self.rows, coefficients.shape[1])
        return SpreadRows(session, [name], [(str(name), None)], shape)

    def adjoint(self, residuals: Any, rows: Array | None = None, columns: slice = ALL) -> Array:
        if rows is not None or columns != ALL or not isinstance(residuals, SpreadResiduals):
            return self._whole.adjoint(np.asarray(residuals), rows, columns)
        session = self._session
        both = session.group.ask_all("slopes", self._whole.name, session.name, residuals.terms)
        value = summed([value for _, value in both])
        session.known_value = session.version, residuals.terms, value
        return summed([gradient for gradient, _ in both])
