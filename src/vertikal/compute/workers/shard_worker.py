"""One worker: its rows of a party's table, of phases and of ring matrices, and products with them.

It knows nothing of Ray and of this party's other workers, and of other parties only the links that
it is given. What it holds has a name that the party's own process gave. A worker that dies is
replaced by one that is told the same things in the same order (`worker_group`), so each method that
changes something here is exact when repeated.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.compute.device.choice import DeviceName
from vertikal.compute.open_operator import OpenOperator
from vertikal.compute.place import Mask, Place, as_slice
from vertikal.compute.threads import one_blas_thread
from vertikal.data.preparation import Preparation
from vertikal.data.sources import Source
from vertikal.data.tables import Block, Table
from vertikal.errors import LinkLost
from vertikal.kernels.feature_map import FeatureMap
from vertikal.losses.pointwise import Loss
from vertikal.ring.ring_matrix import RingMatrix
from vertikal.solvers.feature_operator import ALL
from vertikal.solvers.objective import column_products
from vertikal.version import __version__

Array: TypeAlias = npt.NDArray[Any]
Terms: TypeAlias = Sequence[tuple[str, Array | None]]
"""Numbers of all rows as a sum of kept ones, each by its name and times a factor (outputs,)."""


class RowLinks(Protocol):
    """Links of one worker to those of other parties; `mesh.worker_links` has them."""

    address: str

    def listen(self, port: int) -> None: ...

    def dial(self, peer: str, worker: int, address: str) -> None: ...

    def send(self, peer: str, worker: int, tag: str, values: Array) -> None: ...

    def receive(
        self, peer: str, worker: int, tag: str, dtype: npt.DTypeLike, shape: tuple[int, ...]
    ) -> Array: ...


@dataclass(frozen=True)
class LocalWork:
    """Ring elements that a worker is to compute and mask."""

    feature_map: str
    table: str
    rows: Array
    every: int
    mask: Mask


@dataclass(frozen=True)
class Piece:
    """Neighbouring rows of these elements that go to one worker of another party, or come."""

    worker: int
    tag: str
    rows: slice


class ShardWorker:
    """The rows of one worker."""

    def __init__(self, device: DeviceName, threads: int) -> None:
        self._place = Place(device)
        self._threads = threads
        self._held: dict[str, Any] = {}
        self._scratch = np.empty(0, np.uint8)
        self._counts: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
        self._blas = ExitStack()

    def hello(self) -> dict[str, Any]:
        """Begin work for a run; tell where this worker runs, and by which version."""
        # The last bits of a product depend on it, as in the party's own process.
        self._blas.close()
        self._blas.enter_context(one_blas_thread())
        return {"version": __version__, "host": socket.gethostname(), "process": os.getpid()}

    def close(self) -> None:
        """Let go of everything; `hello` begins another run."""
        self._blas.close()
        self.forget(list(self._held))
        self._counts.clear()
        self._scratch = np.empty(0, np.uint8)

    def forget(self, names: Sequence[str]) -> None:
        """Let go of these things."""
        for name in names:
            gone = self._held.pop(name, None)
            if hasattr(gone, "close"):
                gone.close()

    # Columns and what is computed of them.

    def take_table(self, name: str, party: str, columns: tuple[str, ...], *stripes: Block) -> None:
        """Take this worker's rows of a table."""
        if stripes and sparse.issparse(stripes[0]):
            values = sparse.vstack(stripes, format="csr")
        else:
            # Copied: what Ray hands out lies in its store, which is to be free for others.
            values = np.concatenate([np.empty((0, len(columns)), _kind(stripes)), *stripes])
        self._held[name] = Table(party, columns, values)

    def read_table(self, name: str, source: Source, preparation: Preparation, rows: Array) -> None:
        """Read and prepare this worker's rows of a source."""
        prepared = preparation.apply(source, rows)
        self._held[name] = prepared.table
        self._counts[name] = prepared.filled, prepared.unseen

    def counts(self, name: str) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many cells were filled in, and not known, while a table was read."""
        return self._counts[name]

    def block(self, name: str, rows: Array, columns: slice = ALL) -> Block:
        """Return some cells as they are kept."""
        return self._held[name].raw(as_slice(rows))[:, columns]

    def survey(self, name: str, rows: Array, work: Callable[[Block], Any]) -> Any:
        """Do some work on these rows of a table, such as a sum."""
        return work(self._held[name].block(as_slice(rows)))

    def keep(self, name: str, thing: Any) -> None:
        """Keep a feature map, or numbers of this worker's rows."""
        self._held[name] = thing

    def local(
        self, feature_map: str, table: str, rows: Array, every: int, mask: Mask | None
    ) -> Array:
        """Compute this party's ring elements of some rows, and mask them if they are to be sent."""
        given = self._held[feature_map]
        block = self._held[table].block(as_slice(rows))
        room = self._room(given, len(rows))
        if mask is None:
            return self._place.local(given, block, every, room)
        return self._place.masked(given, block, every, mask, room)

    def _room(self, feature_map: FeatureMap, rows: int) -> Array:
        """Return memory for elements; it is used again once an answer has been sent or kept.

        Memory that is new for every block costs more than to compute what is written to it.
        """
        shape, dtype = (rows, feature_map.elements), feature_map.ring.dtype
        size = rows * feature_map.elements * dtype.itemsize
        if self._scratch.nbytes < size:
            self._scratch = np.empty(size, np.uint8)
        return self._scratch[:size].view(dtype).reshape(shape)

    # Links to workers of other parties.

    def open_links(self, name: str, make: Callable[[int], RowLinks], number: int) -> None:
        """Have links of worker ``number``."""
        self._held[name] = make(number)

    def listen(self, name: str, port: int) -> str:
        """Let others dial this worker at a port, 0 for any; returns the address."""
        links: RowLinks = self._held[name]
        links.listen(port)
        return links.address

    def dial(self, name: str, peer: str, addresses: Sequence[str]) -> None:
        """Make a link to each worker of another party."""
        for number, address in enumerate(addresses):
            self._held[name].dial(peer, number, address)

    def send_local(self, links: str, work: LocalWork, peer: str, pieces: Sequence[Piece]) -> None:
        """Compute and mask ring elements of some rows, and send them to workers of ``peer``."""
        elements = self._worked(work)
        lost = None
        for piece in pieces:
            try:
                part = elements[piece.rows]
                self._held[links].send(peer, piece.worker, piece.tag, part)
            except LinkLost as error:
                lost = error  # the others wait for their pieces
        if lost is not None:
            raise lost

    def sum_local(
        self,
        links: str,
        work: LocalWork,
        pieces: Mapping[str, Sequence[Piece]],
        kept: tuple[str, int] | None,
        returned: bool,
    ) -> Array | None:
        """Compute and mask ring elements, and add what workers of other parties send.

        ``kept`` is the name of summed elements, and the place there, at which the sum is kept.
        """
        elements = self._worked(work)
        for peer, sent in pieces.items():
            for piece in sent:
                part = elements[piece.rows]
                come = self._held[links].receive(
                    peer, piece.worker, piece.tag, part.dtype, part.shape
                )
                np.add(part, come, out=part)
        if kept is not None:
            name, start = kept
            self.add_elements(name, start, elements)
        return elements if returned else None

    def _worked(self, work: LocalWork) -> Array:
        return self.local(work.feature_map, work.table, work.rows, work.every, work.mask)

    # Summed ring elements, and products with their features.

    def begin_elements(self, name: str, shape: tuple[int, int], dtype: str) -> None:
        """Make room for summed ring elements."""
        self._held[name] = np.empty(shape, dtype)

    def add_elements(self, name: str, start: int, elements: Array) -> None:
        """Keep the elements of some rows."""
        self._held[name][start : start + len(elements)] = elements

    def elements(self, name: str, rows: slice = ALL) -> Array:
        """Return elements of this worker, all by default."""
        return np.asarray(self._held[name][rows])

    def begin_operator(self, name: str, feature_map: str, elements: str, precise: bool) -> None:
        """Make Φ of the elements; ``precise`` is decided by the rows of all workers."""
        given, held = self._held[feature_map], self._held[elements]
        operator = self._place.operator(given, len(held), held)
        if type(operator) is OpenOperator:
            operator = OpenOperator(given, len(held), held, threads=self._threads, precise=precise)
        self._held[name] = operator

    def forward(self, name: str, coefficients: Array, rows: Array | None, columns: slice) -> Array:
        return np.asarray(self._held[name].forward(coefficients, rows, columns))

    def adjoint(self, name: str, residuals: Array, rows: Array | None, columns: slice) -> Array:
        return np.asarray(self._held[name].adjoint(residuals, rows, columns))

    def gram(self, name: str, rows: Array, weights: Array, columns: slice) -> Array:
        return np.asarray(self._held[name].gram(rows, weights, columns))

    # Numbers of all rows that stay here while a solver works.

    def in_session(self, name: str, method: str, *arguments: Any) -> None:
        """Change what is held for a solver."""
        if name not in self._held:
            self._held[name] = SolverRows()
        getattr(self._held[name], method)(*arguments)

    def of_session(self, name: str, method: str, *arguments: Any) -> Any:
        """Compute something of what is held for a solver."""
        return getattr(self._held[name], method)(*arguments)

    def forward_rows(self, name: str, operator: str, rows: str, coefficients: Array) -> None:
        """Keep Φ @ coefficients for a solver."""
        self.in_session(name, "take_rows", rows, self._held[operator].forward(coefficients))

    def slopes(self, operator: str, session: str, terms: Terms) -> tuple[Array, Array]:
        """Return this worker's part of the gradient Φᵀ·∂R/∂f, and of R(f)."""
        held: SolverRows = self._held[session]
        f = held.rows(terms)
        gradient = self._held[operator].adjoint(held.residuals_at(f))
        return np.asarray(gradient), held.value_at(f)

    # Matrices of ring elements.

    def begin_matrix(self, name: str, shape: tuple[int, int], dtype: str) -> None:
        """Make an empty matrix of ring elements."""
        self._held[name] = self._place.matrices(shape, dtype)

    def write_to_matrix(self, name: str, rows: slice, block: Array) -> None:
        """Write some rows of a matrix."""
        with self._held[name].writing(rows) as here:
            here[:] = block

    def product(
        self, name: str, kind: str, vectors: Array, rows: Array | None, columns: slice
    ) -> Array:
        """Multiply a matrix, or some of its rows and columns, by vectors."""
        matrix: RingMatrix = self._held[name]
        if rows is None and columns == ALL:
            return matrix.product(kind, vectors)
        chosen = ALL if rows is None else rows
        return matrix.product(kind, vectors, lambda whole: whole[chosen, columns])

    def sizes(self) -> Mapping[str, int]:
        """Return the bytes of what is held here, by name."""
        return {name: one.nbytes for name, one in self._held.items() if hasattr(one, "nbytes")}


class SolverRows:
    """Numbers of one worker's rows, (rows, outputs) each, that one run of a solver works with."""

    def __init__(self) -> None:
        self._rows: dict[str, Array] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that come and go."""
        return sum(one.nbytes for one in self._rows.values())

    def begin_objective(self, loss: Loss, targets: Array, shares: Array, constant: Array) -> None:
        """Take the targets and shares of the rows, and what f begins with."""
        self._loss, self._constant = loss, constant
        self._targets, self._shares = np.array(targets), np.array(shares)[:, None]

    def start_rows(self, name: str) -> None:
        """Let f begin with the constant."""
        self._rows[name] = np.broadcast_to(self._constant, self._targets.shape).copy()

    def take_rows(self, name: str, values: Array) -> None:
        """Take numbers from elsewhere."""
        self._rows[name] = np.array(values, np.float64)

    def drop_rows(self, names: Sequence[str]) -> None:
        """Let go of these numbers."""
        for name in names:
            del self._rows[name]

    def add_rows(self, name: str, terms: Terms) -> None:
        """Add a sum of other numbers to those of this name."""
        self._rows[name] += self.rows(terms)

    def rows(self, terms: Terms) -> Array:
        """Return a sum of numbers that are held."""
        total = None
        for name, factor in terms:
            part = self._rows[name] if factor is None else factor * self._rows[name]
            total = part if total is None else total + part
        return np.asarray(total)

    def residuals(self, terms: Terms) -> Array:
        """Return ∂R/∂f."""
        return self.residuals_at(self.rows(terms))

    def residuals_at(self, f: Array) -> Array:
        return np.asarray(self._shares * self._loss.derivative(f, self._targets))

    def value(self, terms: Terms) -> Array:
        """Return the part of these rows in R(f), (outputs,)."""
        return self.value_at(self.rows(terms))

    def value_at(self, f: Array) -> Array:
        return np.asarray(self._shares[:, 0] @ self._loss.value(f, self._targets))

    def along(self, terms: Terms, direction: Terms) -> tuple[Array, Array]:
        """Return the part of these rows in the first and second derivative along a direction."""
        f, d = self.rows(terms), self.rows(direction)
        bend = self._shares * self._loss.curvature(f, self._targets)
        first = column_products(self.residuals_at(f), d)
        return first, column_products(bend, np.square(d))


def _kind(stripes: Sequence[Array]) -> npt.DTypeLike:
    return stripes[0].dtype if stripes else np.float64
