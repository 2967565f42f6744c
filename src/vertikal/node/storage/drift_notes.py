"""Notes of drift in a party's store: what was last seen, by model and table.

They are for the owner of the store alone: no message to another party is made of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from vertikal.data.drift.comparison import Drift
from vertikal.files import private_folder, write_whole
from vertikal.records import from_json

FOLDER = "drift"


class TableDrift(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Drift that was seen when a table was last read for predictions."""

    when: str
    rows: int
    found: tuple[Drift, ...]


class DriftNotes:
    """The notes in one store, a file per model."""

    def __init__(self, store: Path) -> None:
        self._folder = store / FOLDER

    def write(self, model: str, table: str, rows: int, found: tuple[Drift, ...]) -> None:
        """Note what a table of so many rows is like for the model with this digest."""
        notes = self.read(model)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        notes[table] = TableDrift(when, rows, found)
        write_whole(private_folder(self._folder) / model, msgspec.json.encode(notes))

    def read(self, model: str) -> dict[str, TableDrift]:
        """Return the notes of a model, by table; none if nothing was seen, or cannot be read."""
        try:
            return from_json((self._folder / model).read_bytes(), dict[str, TableDrift])
        except (OSError, msgspec.DecodeError):
            return {}
