"""Models and tables at hand for predictions; a table is read again when it has changed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.cells import TEXT, kind_of, numbers, texts
from vertikal.data.file_formats import arrow
from vertikal.data.ids import normalise, write_ids
from vertikal.data.preparation import Preparation
from vertikal.data.sources import Source, open_source
from vertikal.data.tables import Table
from vertikal.errors import InputError, PeerVisibleError
from vertikal.node.approval.job_records import Record
from vertikal.node.approval.offers import open_offer
from vertikal.node.approval.policy import offered
from vertikal.node.config.party_file import Offer
from vertikal.node.models.job_models import JobModels
from vertikal.node.models.store import Manifest
from vertikal.node.predictions.keyed_lock import KeyedLock
from vertikal.node.storage.party_home import PartyHome

DATABASE = 60
"""Seconds after which a table of a database is read again."""
KEEP = 600.0
"""Seconds without a request after which a model is let go, and its table with it."""
PATIENCE = 20.0
"""Seconds that a request waits while another loads the same model or reads the same table; the
leader, which waits longer, is then told why."""
READINGS = 3
"""How often a file is read that changes meanwhile."""


@dataclass(frozen=True)
class Model:
    """A party's shard of one job, and how its columns are made."""

    record: Record
    manifest: Manifest
    shard: Any
    preparation: Preparation

    @property
    def digest(self) -> str:
        return self.record.digest


@dataclass(frozen=True)
class _Reading:
    """What is read of a table; models that need the same share it."""

    offer: Offer
    columns: tuple[str, ...]
    whole: bool
    """Whether only rows with all their cells count."""


@dataclass(frozen=True)
class Rows:
    """A table in memory: where each id stands, and which rows have all their cells."""

    stamp: tuple[int, ...]
    source: Source
    places: dict[bytes, int]

    def known(self, ids: tuple[str, ...]) -> Any:
        """Which of these ids are there, with all cells that the model needs: (ids,) bool."""
        return np.array([one in self.places for one in write_ids(ids)[0]], bool)

    def table(self, model: Model, ids: tuple[str, ...]) -> Table:
        """The rows of these ids as the model wants them; training means for those unknown."""
        places = np.array([self.places.get(one, -1) for one in write_ids(ids)[0]], np.int64)
        there = places >= 0
        values = model.preparation.blank(len(ids)).block(slice(None))
        if there.any():
            prepared = model.preparation.apply(self.source, places[there])
            values[there] = prepared.table.block(slice(None))
        return Table(self.source.party, model.shard.columns, values)


@dataclass
class _Held:
    """A model in memory, when it was last asked for, and what it needs of which table."""

    model: Model
    used: float = field(default_factory=time.monotonic)
    reading: _Reading | None = None


class ModelCache:
    """What one party needs at hand to predict."""

    def __init__(self, home: PartyHome) -> None:
        self._home = home
        self._models = JobModels(home)
        self._turns = KeyedLock(PATIENCE)
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._rows: dict[_Reading, Rows] = {}

    def model(self, record: Record) -> Model:
        """The stored shard of this job, its digests and known answers checked when it is loaded.

        Asked before every prediction: a shard that was deleted since is not used any more.
        """
        with self._turns.of(record.digest, f"{self._home.me}: its model is being loaded"):
            held = self._held.get(record.digest)
            if held is None or not self._models.holds(held.model.manifest):
                with self._lock:
                    self._held.pop(record.digest, None)
                held = _Held(self._load(record))
                with self._lock:
                    self._held[record.digest] = held
            held.used = time.monotonic()
            return held.model

    def rows(self, model: Model) -> Rows:
        """The table as it is now, for all of one request: what is said to be known is then used."""
        offer = offered(self._home.file, model.record.proposal)[0]
        whole = model.preparation.missing == "refuse"
        reading = _Reading(offer, model.preparation.names, whole)
        with self._lock:
            if model.digest in self._held:
                self._held[model.digest].reading = reading
        with self._turns.of(reading, f"{self._home.me}: its table is being read"):
            known = self._rows.get(reading)
            if known is None or known.stamp != _stamp(self._home, offer):
                known = _read_whole(self._home, reading)
                with self._lock:
                    self._rows[reading] = known
            return known

    def tidy(self) -> None:
        """Let go of models that were deleted or lie idle, and of tables that no other one needs."""
        oldest = time.monotonic() - KEEP
        with self._lock:
            for digest, held in list(self._held.items()):
                if held.used < oldest or not self._models.holds(held.model.manifest):
                    del self._held[digest]
            needed = {held.reading for held in self._held.values()}
            for reading in self._rows.keys() - needed:
                del self._rows[reading]

    def _load(self, record: Record) -> Model:
        manifest = self._models.newest_of_job(record.digest)
        if manifest is None:
            raise PeerVisibleError(f"{self._home.me} has no model of this job, or not any more")
        algorithm = algorithm_named(record.proposal.job.algorithm)
        stored = self._models.load(manifest.name, algorithm, manifest.version)
        if stored.preparation is None:
            raise InputError(f"model {manifest.name!r} has no preparation of its columns")
        return Model(record, manifest, stored.shard, stored.preparation)


def _stamp(home: PartyHome, offer: Offer) -> tuple[int, ...]:
    """What changes when a table does: of a file which it is, its time and size, of a database the
    minute."""
    if offer.query is not None:
        return (int(time.monotonic()) // DATABASE,)
    try:
        found = (home.folder / offer.source).stat()
    except OSError as error:
        raise InputError(f"table of {home.me} cannot be read: {error.strerror}") from None
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _read_whole(home: PartyHome, reading: _Reading) -> Rows:
    """The table as it was at one moment; a file that is written to meanwhile is read again."""
    for _ in range(READINGS):
        stamp = _stamp(home, reading.offer)
        rows = _read(home, reading, stamp)
        if reading.offer.query is not None or _stamp(home, reading.offer) == stamp:
            return rows
    raise InputError(
        f"table of {home.me} changes while it is read; write a new file and move it to its place"
    )


def _read(home: PartyHome, reading: _Reading, stamp: tuple[int, ...]) -> Rows:
    offer, names = reading.offer, reading.columns
    source = open_offer(home, offer)
    # Ids and columns in one pass: in a second one another file may lie there.
    batches = list(source.blocks([offer.id, *names]))
    if not batches:
        raise InputError(f"table of {home.me}: {source.title} has no rows")
    content = arrow().Table.from_batches(batches)
    usable = np.ones(content.num_rows, bool)
    if reading.whole:
        for name in names:
            for chunk_start, cells in _chunks(content.column(name)):
                usable[chunk_start : chunk_start + len(cells)] &= _there(cells)
    written = normalise(home.me, content.column(offer.id)).values
    places = {one: row for row, one in enumerate(written) if usable[row]}
    return Rows(stamp, open_source(home.me, content.select(list(names))), places)


def _chunks(column: Any) -> list[tuple[int, Any]]:
    found, start = [], 0
    for cells in column.chunks:
        found.append((start, cells))
        start += len(cells)
    return found


def _there(cells: Any) -> Any:
    """Which cells are not missing."""
    if kind_of(cells) == TEXT:
        return np.asarray(texts(cells).is_valid())
    return ~np.isnan(numbers(cells))
