"""Models and tables at hand for predictions, read again when they have changed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from vertikal.data.ids import survey
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.node.jobs import Record
from vertikal.node.programs import program_named
from vertikal.node.site import Site
from vertikal.node.sources import Loaded, load


@dataclass(frozen=True)
class Model:
    """A party's shard of one job, and where its columns come from."""

    record: Record
    shard: Any

    @property
    def digest(self) -> str:
        return self.record.digest


class Shelf:
    """What one party needs at hand to predict."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._models: dict[str, Model] = {}
        self._tables: dict[str, tuple[Loaded, dict[bytes, int]]] = {}

    def model(self, record: Record) -> Model:
        """The stored shard of this job, its digests and golden rows checked when it is loaded."""
        with self._lock:
            if record.digest not in self._models:
                manifest = self._site.model_of(record.digest)
                if manifest is None:
                    raise InputError(f"{self._site.me} has no model of job {record.number}")
                kind = program_named(record.proposal.job.algorithm).shard_kind()
                stored = self._site.models.load(manifest.name, kind, manifest.version)
                self._models[record.digest] = Model(record, stored.shard)
            return self._models[record.digest]

    def known(self, model: Model, ids: tuple[str, ...]) -> Any:
        """Which of these ids this party has: (ids,) bool."""
        _, index = self._table(model)
        return np.array([one in index for one in survey(ids)[0]], bool)

    def table(self, model: Model, ids: tuple[str, ...]) -> Table:
        """The rows of these ids as the model wants them; training means for those unknown."""
        loaded, index = self._table(model)
        rows = [index.get(one, -1) for one in survey(ids)[0]]
        values = np.column_stack([loaded.column(name)[rows] for name in model.shard.columns])
        missing = np.array(rows) < 0
        if missing.any():
            values[missing] = loaded.means(model.shard.columns)
        return Table(self._site.me, model.shard.columns, values)

    def _table(self, model: Model) -> tuple[Loaded, dict[bytes, int]]:
        with self._lock:
            if model.digest not in self._tables:
                loaded = load(self._site, model.record.proposal)
                written, _ = survey(loaded.ids)
                self._tables[model.digest] = (
                    loaded,
                    {one: row for row, one in enumerate(written)},
                )
            return self._tables[model.digest]
