"""The watch for drift: tables that are read for predictions, against what they were in training.

New people may stand in the table of training, among so many others that no column of it has moved.
So whoever is scored from that table is compared by itself, if there are enough in one request.

What it finds goes to the owner: a line of the service, a line of the audit log, and a note in the
store that `vertikal model show` tells. Nobody else hears of it, also not by an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from vertikal.data.drift.comparison import Drift, compare
from vertikal.data.drift.profile import Profile
from vertikal.data.file_formats import arrow
from vertikal.data.sources import Source, open_source
from vertikal.node.models.store import Manifest
from vertikal.node.storage.drift_notes import DriftNotes
from vertikal.node.storage.party_home import PartyHome

Array = npt.NDArray[Any]

FEWEST_PEOPLE = 50
"""People of one request below which nothing is said about them by themselves."""


class DriftWatch:
    """Looks at each state of each table once for each model."""

    def __init__(self, home: PartyHome, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self._notes = DriftNotes(home.store)
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], Any] = {}

    def look(
        self,
        manifest: Manifest,
        profile: Profile,
        tables: Mapping[str, Source],
        stamps: tuple[Any, ...],
    ) -> None:
        """Compare tables, as they were read at these stamps, with the profile of a model."""
        with self._lock:
            for (name, source), stamp in zip(tables.items(), stamps, strict=True):
                if self._seen.get((manifest.digest, name)) != stamp:
                    self._seen[manifest.digest, name] = stamp
                    try:
                        self._compare(manifest, profile, name, source)
                    except Exception as error:
                        # A warning that fails must not fail the predictions.
                        self._home.mind_room(error)
                        self._say(f"drift of table {name}: {type(error).__name__}: {error}")

    def look_at_people(
        self, manifest: Manifest, profile: Profile, name: str, source: Source, rows: Array
    ) -> None:
        """Compare the people of one request who stand in the table of training, in these rows."""
        if len(rows) < FEWEST_PEOPLE:
            return
        with self._lock:
            try:
                columns = [one.name for one in profile.columns]
                people = arrow().Table.from_batches(list(source.blocks(columns))).take(rows)
                found = compare(profile, open_source(source.party, people))
                self._tell(manifest, f"{name}, people scored", len(rows), found)
            except Exception as error:
                self._home.mind_room(error)
                self._say(f"drift of people scored: {type(error).__name__}: {error}")

    def _compare(self, manifest: Manifest, profile: Profile, name: str, source: Source) -> None:
        first = [one.name for one in profile.columns[:1]]
        rows = sum(batch.num_rows for batch in source.blocks(first))
        if not rows:
            return
        self._tell(manifest, name, rows, compare(profile, source))

    def _tell(self, manifest: Manifest, name: str, rows: int, found: tuple[Drift, ...]) -> None:
        self._notes.write(manifest.digest, name, rows, found)
        for one in found:
            text = f"model {manifest.name}, table {name}, column {one.column}: {one.words}"
            self._say(f"drift: {text}")
            self._home.note_once("drift", text)
