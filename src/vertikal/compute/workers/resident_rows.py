"""Predictions that stay at the workers, and the objective there.

An exact solver looks at f of all rows several times in an iteration. A sum of such numbers is only
written down where it is used, at the workers, so a request names what it is made of. What travels
are vectors of as many numbers as there are features, step lengths and sums.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.compute.workers.row_layout import RowLayout
from vertikal.compute.workers.shard_worker import Terms
from vertikal.compute.workers.worker_group import WorkerGroup, summed
from vertikal.solvers.objective import Objective, RowObjective

Array = npt.NDArray[Any]


class SolverSession:
    """Things that workers hold for one run of a solver, until nobody uses them any more.

    All of them have one name in the workers' lists, so that they are let go of together.
    """

    def __init__(self, group: WorkerGroup, layout: RowLayout) -> None:
        self.group, self.layout = group, layout
        self.name = group.name("solver")
        self._count = 0
        self.version = 0
        """Changes of numbers that existed already."""
        self.known_value: tuple[int, Terms, Array] | None = None
        self._unused: list[str] = []
        weakref.finalize(self, group.forget, self.name)

    def new(self) -> RowsName:
        """Make a name for numbers of all rows; they are dropped when it is gone."""
        self._count += 1
        name = RowsName(f"rows {self._count}")
        weakref.finalize(name, self._unused.append, str(name))
        return name

    def change(self, worker: int, method: str, *arguments: Any) -> None:
        self.group.change(worker, self.name, "in_session", method, *arguments)

    def change_all(self, method: str, *arguments: Any) -> None:
        names, self._unused[:] = self._unused[:], []
        if names:
            self.change_all("drop_rows", names)
        for worker in range(len(self.group)):
            self.change(worker, method, *arguments)

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        return self.group.ask_all("of_session", self.name, method, *arguments)

    def sent(self, values: Array) -> SpreadRows:
        """Send numbers of all rows to the workers."""
        name = self.new()
        for worker in range(len(self.group)):
            part = self.group.store(self.layout.of(values, worker))
            self.change(worker, "take_rows", str(name), part)
        return SpreadRows(self, [name], [(str(name), None)], values.shape)

    def rows_of(self, values: SpreadRows | Array) -> SpreadRows:
        return values if isinstance(values, SpreadRows) else self.sent(np.asarray(values))


class RowsName(str):
    """The name of numbers of all rows; it is held by all sums that they are part of."""

    __slots__ = ("__weakref__",)


class SpreadRows:
    """Numbers of all rows, (rows, outputs), as a sum of those that workers hold."""

    # An array in front of the sign leaves the product to this class.
    __array_ufunc__ = None

    def __init__(
        self, session: SolverSession, names: list[RowsName], terms: Terms, shape: tuple[int, ...]
    ) -> None:
        self.session, self.names, self.terms, self.shape = session, names, terms, shape

    def __add__(self, other: SpreadRows | Array) -> SpreadRows:
        more = self.session.rows_of(other)
        names, terms = [*self.names, *more.names], [*self.terms, *more.terms]
        return SpreadRows(self.session, names, terms, self.shape)

    def __iadd__(self, other: SpreadRows | Array) -> SpreadRows:
        more = self.session.rows_of(other)
        ((name, factor),) = self.terms
        assert factor is None
        self.session.version += 1
        self.session.change_all("add_rows", name, more.terms)
        return self

    def __rmul__(self, factors: Array) -> SpreadRows:
        given = np.asarray(factors)
        terms = [(name, given if one is None else given * one) for name, one in self.terms]
        return SpreadRows(self.session, self.names, terms, self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._gathered(self.session.ask_all("rows", self.terms), dtype)

    def _gathered(self, parts: list[Array], dtype: Any = None) -> Array:
        values = np.empty(self.shape)
        for worker, part in enumerate(parts):
            self.session.layout.put_back(values, worker, part)
        return np.asarray(values, dtype)


class SpreadResiduals(SpreadRows):
    """∂R/∂f of an f that workers hold; they are computed where they are used."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._gathered(self.session.ask_all("residuals", self.terms), dtype)


class SpreadObjective(Objective):
    """R = (1/W) Σ_i w_i L(f_i, y_i), of predictions that are `SpreadRows`."""

    def __init__(self, objective: RowObjective, session: SolverSession) -> None:
        self.penalty = objective.penalty
        self._plain, self._session = objective, session
        shares, layout = objective.shares(), session.layout
        for worker in range(len(session.group)):
            store = session.group.store
            session.change(
                worker,
                "begin_objective",
                objective.loss,
                store(layout.of(objective.targets, worker)),
                store(layout.of(shares, worker)),
                objective.constant,
            )

    def start(self) -> Any:
        name = self._session.new()
        self._session.change_all("start_rows", str(name))
        shape = self._plain.targets.shape
        return SpreadRows(self._session, [name], [(str(name), None)], shape)

    def resume(self, predictions: Array) -> Any:
        return self._session.sent(predictions)

    def value(self, f: Any) -> Array:
        known = self._session.known_value
        if known is not None and known[0] == self._session.version and known[1] is f.terms:
            return known[2]
        return summed(self._session.ask_all("value", f.terms))

    def residuals(self, f: Any) -> Any:
        return SpreadResiduals(self._session, f.names, f.terms, f.shape)

    def along(self, f: Any, direction: Any) -> tuple[Array, Array]:
        there = self._session.rows_of(direction)
        both = self._session.ask_all("along", f.terms, there.terms)
        return summed([first for first, _ in both]), summed([second for _, second in both])

    def shares(self) -> Array:
        return self._plain.shares()

    def stiffness(self) -> float:
        return self._plain.stiffness()
