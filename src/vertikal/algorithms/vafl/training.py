"""VAFL (Chen, Jin, Sun, Yin 2020) for two classes: training and prediction.

Every party turns its columns into an embedding by a layer of its own. The label party is the
server: it keeps the latest embedding of every row by every party, and has the head that predicts
from all of them. A party draws a batch, sends its embeddings of these rows and waits for nobody but
the server, which puts them into its table, steps the head on the batch with what the others sent
last, and returns the slopes at the embeddings. The label party's own layer is part of the server,
and steps with every batch.

Nothing is masked, as published: the label party sees embeddings, and the others slopes. The
Gaussian noise that the paper may add to embeddings is not here.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.vafl.network import Layer, NetworkHead
from vertikal.algorithms.vafl.settings import VaflSettings
from vertikal.errors import InputError, MeshError
from vertikal.losses.pointwise import loss_named
from vertikal.party.party import Labels, Party
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.keys.prg import derive_key, uniform_elements

Array = npt.NDArray[Any]

ROWS = Disclosure(
    "rows of a batch",
    "row numbers of a batch",
    "the label party learns which rows a step uses",
    masked=False,
)
EMBEDDINGS = Disclosure(
    "embeddings",
    "embeddings of rows by the sender's layer",
    "the label party learns a smooth function of the sender's columns at each row, in the clear",
    masked=False,
)
SLOPES = Disclosure(
    "slopes at embeddings",
    "gradient of the loss at the receiver's embeddings of its batch",
    "the receiver learns on which side the label of each row of the batch lies",
    masked=False,
)


@dataclass
class VaflShard:
    """A party's part: its layer; at the label party also the head."""

    party: str
    columns: tuple[str, ...]
    layer: Layer
    head: NetworkHead | None = None
    order: tuple[str, ...] = ()
    """At the label party: whose batch each step was."""
    trace: tuple[float, ...] = ()
    """At the label party: mean loss of each batch, before its step."""


def train(party: Party, settings: VaflSettings) -> VaflShard:
    """Train at this party and return its shard."""
    x = party.table.block(slice(0, party.table.rows))
    layer = Layer.drawn(party.secret("layer"), x.shape[1], settings.embedding)
    shard = VaflShard(party.name, party.table.columns, layer)
    if party.labels is None:
        with party.clock.stage("solve"):
            _step_by_answers(party, settings, x, layer)
        return shard
    with party.clock.stage("solve", settings.n_steps):
        server = _Server(party, settings, party.labels, x, layer)
        server.run()
    shard.head, shard.order, shard.trace = server.head, tuple(server.order), tuple(server.trace)
    return shard


def draw_rows(seed: bytes, number: int, size: int, rows: int) -> Array:
    """Draw the rows of a party's batch with this number."""
    words = uniform_elements(derive_key(seed, "batches", str(number)), (size,), np.uint64)
    return (words % np.uint64(rows)).astype(np.int64)


def _step_by_answers(party: Party, settings: VaflSettings, x: Any, layer: Layer) -> None:
    """Send batch after batch at a party without labels, until an empty answer comes."""
    party.tell(party.leader, layer.forward(x).astype(np.float32), EMBEDDINGS)
    for number in count():
        rows = draw_rows(party.secret("rows"), number, settings.batch_size, party.table.rows)
        some = x[rows]
        h = layer.forward(some)
        party.tell(party.leader, rows, ROWS)
        party.tell(party.leader, h.astype(np.float32), EMBEDDINGS)
        slopes = np.asarray(party.hear(party.leader, SLOPES))
        if not len(slopes):
            return
        if slopes.dtype != np.float32 or slopes.shape != h.shape or not np.isfinite(slopes).all():
            raise MeshError(f"{party.name}: {party.leader} sent no slopes at the embeddings")
        layer.step(some, h, slopes, settings.step_size, settings.alpha)
        party.clock.advance(1)


class _Server:
    """The label party's part: a table of embeddings, the head, and a thread for each other party.

    All but receiving and sending is done with the lock held, so that a run is a sequence of steps,
    in the order that is recorded.
    """

    def __init__(
        self, party: Party, settings: VaflSettings, labels: Labels, x: Any, layer: Layer
    ) -> None:
        self.order: list[str] = []
        self.trace: list[float] = []
        width = settings.embedding * len(party.parties)
        self.head = NetworkHead.drawn(party.secret("head"), width, settings.hidden)
        self._party, self._settings, self._x, self._layer = party, settings, x, layer
        self._loss = loss_named("logistic", regression=False)
        self._targets = labels.targets
        self._weights = labels.weights / labels.weights.mean()
        self._table = np.zeros((len(self._targets), width), np.float32)
        self._lock = threading.Lock()
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Take steps until there are enough of them, whoever's batches they are."""
        party = self._party
        others = [name for name in party.parties if name != party.name]
        for name in others:
            self._table[:, self._place(name)] = self._heard(name, self._table.shape[0])
        threads = [
            threading.Thread(target=self._guarded, args=(name,), name=f"{party.name} → {name}")
            for name in others
        ]
        for thread in threads:
            thread.daemon = True
            thread.start()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _guarded(self, name: str) -> None:
        try:
            self._answer(name)
        except BaseException as error:
            with self._lock:
                self._failure = self._failure or error

    def _answer(self, name: str) -> None:
        """Take one party's batches, to the last."""
        width = self._settings.embedding
        while True:
            rows = np.asarray(self._party.hear(name, ROWS))
            if (
                rows.dtype != np.int64
                or rows.ndim != 1
                or not 0 <= rows.min(initial=0) <= rows.max(initial=0) < len(self._table)
            ):
                raise MeshError(f"{self._party.name}: {name} named rows outside the table")
            slopes = self._take(name, rows, self._heard(name, len(rows)))
            if slopes is None:
                self._party.tell(name, np.empty((0, width), np.float32), SLOPES)
                return
            self._party.tell(name, slopes.astype(np.float32), SLOPES)

    def _heard(self, name: str, rows: int) -> Array:
        found = np.asarray(self._party.hear(name, EMBEDDINGS))
        wanted = (rows, self._settings.embedding)
        if found.dtype != np.float32 or found.shape != wanted or not np.isfinite(found).all():
            raise MeshError(f"{self._party.name}: {name} sent no embeddings of {rows} rows")
        return found

    def _take(self, name: str, rows: Array, embeddings: Array) -> Array | None:
        """Step on one batch; return the slopes at its sender's embeddings, or None at the end."""
        with self._lock:
            if self._failure is not None or len(self.order) == self._settings.n_steps:
                return None
            step_size, alpha = self._settings.step_size, self._settings.alpha
            own = self._place(self._party.name)
            self._table[rows, self._place(name)] = embeddings
            h = self._table[rows].astype(float)
            some = self._x[rows]
            h[:, own] = self._layer.forward(some)
            f = self.head.forward(h)
            if not np.isfinite(f).all():
                raise InputError.of("step_size", "small enough: the predictions diverge", step_size)
            weights = self._weights[rows, None]
            targets = self._targets[rows]
            self.trace.append(float((weights * self._loss.value(f, targets)).mean()))
            slopes = self.head.step(
                h,
                lambda f: weights * self._loss.derivative(f, targets) / len(rows),
                step_size,
                alpha,
            )
            self._layer.step(some, h[:, own], slopes[:, own], step_size, alpha)
            self.order.append(name)
            self._party.clock.advance(1, f"loss {self.trace[-1]:.4f}")
            return slopes[:, self._place(name)]

    def _place(self, name: str) -> slice:
        """Columns of the table that one party's embeddings are in."""
        start = self._party.parties.index(name) * self._settings.embedding
        return slice(start, start + self._settings.embedding)


def predict(party: Party, shard: VaflShard) -> Array | None:
    """Predict at this party: f of all rows of ``party.table`` at the leader, None elsewhere."""
    h = shard.layer.forward(party.table.block(slice(0, party.table.rows)))
    if shard.head is None:
        party.tell(party.leader, h.astype(np.float32), EMBEDDINGS)
        return None
    found = []
    for name in party.parties:
        part = h if name == party.name else np.asarray(party.hear(name, EMBEDDINGS))
        if part.shape != h.shape or not np.isfinite(part).all():
            raise MeshError(f"{party.name}: {name} sent no embeddings of {len(h)} rows")
        found.append(part)
    return shard.head.forward(np.hstack(found))
