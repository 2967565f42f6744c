"""Models and tables kept in memory for predictions; a table is read again when it has changed.

People are looked for in the tables for scoring that a party offers beside the table of training,
and then in that one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.cells import TEXT, kind_of, numbers, texts
from vertikal.data.drift.profile import Profile
from vertikal.data.file_formats import arrow
from vertikal.data.ids import normalise, write_ids
from vertikal.data.preparation import Preparation
from vertikal.data.sources import Source, open_source
from vertikal.data.tables import Table
from vertikal.errors import InputError, PeerVisibleError
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.offers import open_offer
from vertikal.node.approval.policy import offered
from vertikal.node.config.party_file import Offer
from vertikal.node.models.job_models import JobModels
from vertikal.node.models.store import Manifest
from vertikal.node.predictions.drift_watch import DriftWatch
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
"""Readings of a file that changes while it is read, before it is refused."""


@dataclass(frozen=True)
class Model:
    """A party's shard of one job, and the preparation of its columns."""

    record: JobRecord
    manifest: Manifest
    shard: Any
    preparation: Preparation
    profile: Profile | None = None

    @property
    def digest(self) -> str:
        return self.record.digest


@dataclass(frozen=True)
class _TablePart:
    """The part of some tables that a model needs; models that need the same part share it."""

    offers: tuple[Offer, ...]
    """The tables in which people are looked for, one after the other; the last was trained on."""
    columns: tuple[str, ...]
    complete: bool
    """True if only rows with all their cells count."""


@dataclass(frozen=True)
class KnownRows:
    """Tables in memory, with the place of each id whose row has the cells that are needed."""

    stamp: tuple[tuple[int, ...], ...]
    source: Source
    """The rows of all of the tables, one table after the other."""
    places: dict[bytes, int]
    tables: tuple[Source, ...] = ()
    """The tables by themselves, in the same order."""
    trained_from: int = 0
    """Place of the first row of the table of training, which is the last one."""

    def known(self, ids: tuple[str, ...]) -> Any:
        """Mark the ids that are there, with all cells that the model needs: (ids,) bool."""
        return np.array([one in self.places for one in write_ids(ids)[0]], bool)

    def held(self, ids: tuple[str, ...]) -> dict[int, bytes]:
        """Return those of the ids that are there, as they are written, by their places."""
        written = enumerate(write_ids(ids)[0])
        return {place: one for place, one in written if one in self.places}

    def in_training_table(self, ids: tuple[str, ...]) -> Any:
        """Rows of the table of training that these ids have there: (some,) int."""
        places = [self.places.get(one, -1) for one in write_ids(ids)[0]]
        return np.array([one - self.trained_from for one in places if one >= self.trained_from])

    def table(self, model: Model, ids: tuple[str, ...]) -> Table:
        """Prepare the rows of these ids for the model; unknown ids get the training means."""
        places = np.array([self.places.get(one, -1) for one in write_ids(ids)[0]], np.int64)
        there = places >= 0
        values = model.preparation.blank(len(ids)).block(slice(None))
        if there.any():
            prepared = model.preparation.apply(self.source, places[there])
            values[there] = prepared.table.block(slice(None))
        return Table(self.source.party, model.shard.columns, values)


@dataclass
class _CachedModel:
    """A model in memory, the time of its last use, and the part of a table that it needs."""

    model: Model
    used: float = field(default_factory=time.monotonic)
    part: _TablePart | None = None


class ModelCache:
    """The models and tables that one party predicts with."""

    def __init__(
        self, home: PartyHome, models: JobModels, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self._home = home
        self._models = models
        self._drift = DriftWatch(home, say)
        self._locks = KeyedLock(PATIENCE)
        self._lock = threading.Lock()
        self._cached: dict[str, _CachedModel] = {}
        self._rows: dict[_TablePart, KnownRows] = {}

    def model(self, record: JobRecord) -> Model:
        """Return the stored shard of this job; loading it checks its digests and known answers.

        Called before every prediction, so that a shard that was deleted since is not used any more.
        """
        with self._locks.hold(record.digest, f"{self._home.me}: its model is being loaded"):
            cached = self._cached.get(record.digest)
            if cached is None or not self._models.holds(cached.model.manifest):
                with self._lock:
                    self._cached.pop(record.digest, None)
                cached = _CachedModel(self._load(record))
                with self._lock:
                    self._cached[record.digest] = cached
            cached.used = time.monotonic()
            return cached.model

    def rows(self, model: Model) -> KnownRows:
        """Return the tables as they are now. A request uses what one call returned to its end, so
        that a row that it found is not missing later."""
        proposal = model.record.proposal
        offered(self._home.file, proposal)  # refuses a table that is not offered any more
        trained_on = str(proposal.job.parties[self._home.me].table)
        tables = self._home.file.tables_to_score(trained_on)
        offers = tuple(tables.values())
        complete = model.preparation.missing == "refuse"
        part = _TablePart(offers, model.preparation.names, complete)
        with self._lock:
            if model.digest in self._cached:
                self._cached[model.digest].part = part
        with self._locks.hold(part, f"{self._home.me}: its table is being read"):
            known = self._rows.get(part)
            if known is None or known.stamp != _stamps(self._home, offers):
                known = _read_unchanged(self._home, part)
                with self._lock:
                    self._rows[part] = known
            if model.profile is not None:
                named = dict(zip(tables, known.tables, strict=True))
                self._drift.look(model.manifest, model.profile, named, known.stamp)
            return known

    def watch_people(self, model: Model, rows: KnownRows, ids: tuple[str, ...]) -> None:
        """Tell the owner if people of a request in the table of training differ from training."""
        if model.profile is not None:
            table = str(model.record.proposal.job.parties[self._home.me].table)
            places = rows.in_training_table(ids)
            self._drift.look_at_people(
                model.manifest, model.profile, table, rows.tables[-1], places
            )

    def tidy(self) -> None:
        """Let go of models that were deleted or lie idle, and of tables that no other one needs."""
        oldest = time.monotonic() - KEEP
        with self._lock:
            for digest, cached in list(self._cached.items()):
                if cached.used < oldest or not self._models.holds(cached.model.manifest):
                    del self._cached[digest]
            needed = {cached.part for cached in self._cached.values()}
            for part in self._rows.keys() - needed:
                del self._rows[part]

    def _load(self, record: JobRecord) -> Model:
        manifest = self._models.newest_of_job(record.digest)
        if manifest is None:
            raise PeerVisibleError(f"{self._home.me} has no model of this job, or not any more")
        algorithm = algorithm_named(record.proposal.job.algorithm)
        stored = self._models.load(manifest.name, algorithm, manifest.version)
        if stored.preparation is None:
            raise InputError(f"model {manifest.name!r} has no preparation of its columns")
        return Model(record, manifest, stored.shard, stored.preparation, stored.profile)


def _stamps(home: PartyHome, offers: tuple[Offer, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(_stamp(home, offer) for offer in offers)


def _stamp(home: PartyHome, offer: Offer) -> tuple[int, ...]:
    """Return numbers that change when a table does: inode, time and size of a file.

    Of a database nothing like it is known; there the minute changes.
    """
    if offer.query is not None:
        return (int(time.monotonic()) // DATABASE,)
    try:
        found = (home.folder / offer.source).stat()
    except OSError as error:
        raise InputError(f"table of {home.me} cannot be read: {error.strerror}") from None
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _read_unchanged(home: PartyHome, part: _TablePart) -> KnownRows:
    """Read all tables as they are at one moment each; see `_read_table`."""
    tables = [_read_table(home, part, offer) for offer in part.offers]
    places: dict[bytes, int] = {}
    claimed: set[bytes] = set()
    start = 0
    for table in tables:
        for row, one in enumerate(table.ids):
            # Who is in a table for scoring is not looked for in an older row, also if cells lack.
            if one not in claimed and table.usable[row]:
                places[one] = start + row
        claimed |= set(table.ids)
        start += len(table.ids)
    contents = [table.content for table in tables]

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        for content in contents:
            yield from content.select(list(columns)).to_batches()

    source = Source(home.me, tables[-1].title, None, part.columns, batches)
    return KnownRows(
        tuple(table.stamp for table in tables),
        source,
        places,
        tuple(open_source(home.me, content) for content in contents),
        sum(len(table.ids) for table in tables[:-1]),
    )


@dataclass(frozen=True)
class _ReadTable:
    """One table in memory: its ids as they are written, and the rows with all cells needed."""

    stamp: tuple[int, ...]
    title: str
    ids: tuple[bytes, ...]
    usable: Any  # (rows,) bool
    content: Any


def _read_table(home: PartyHome, part: _TablePart, offer: Offer) -> _ReadTable:
    """Read a table as it is at one moment; a file that is written to meanwhile is read again."""
    for _ in range(READINGS):
        stamp = _stamp(home, offer)
        table = _read(home, part, offer, stamp)
        if offer.query is not None or _stamp(home, offer) == stamp:
            return table
    raise InputError(
        f"table of {home.me} changes while it is read; write a new file and move it to its place"
    )


def _read(home: PartyHome, part: _TablePart, offer: Offer, stamp: tuple[int, ...]) -> _ReadTable:
    names = part.columns
    source = open_offer(home, offer)
    # Ids and columns in one pass: before a second one the file may be replaced.
    batches = [one for one in source.blocks([offer.id, *names]) if one.num_rows]
    if not batches:
        if offer is not part.offers[-1]:
            # Nobody is to be scored today.
            return _ReadTable(stamp, source.title, (), np.zeros(0, bool), _nothing(names))
        raise InputError(f"table of {home.me}: {source.title} has no rows")
    content = arrow().Table.from_batches(batches)
    usable = np.ones(content.num_rows, bool)
    if part.complete:
        for name in names:
            for chunk_start, cells in _chunks(content.column(name)):
                usable[chunk_start : chunk_start + len(cells)] &= _is_filled(cells)
    written = normalise(home.me, content.column(offer.id)).values
    return _ReadTable(stamp, source.title, written, usable, content.select(list(names)))


def _nothing(names: Sequence[str]) -> Any:
    return arrow().table({name: [] for name in names})


def _chunks(column: Any) -> list[tuple[int, Any]]:
    found, start = [], 0
    for cells in column.chunks:
        found.append((start, cells))
        start += len(cells)
    return found


def _is_filled(cells: Any) -> Any:
    """Mark the cells that are not missing."""
    if kind_of(cells) == TEXT:
        return np.asarray(texts(cells).is_valid())
    return ~np.isnan(numbers(cells))
