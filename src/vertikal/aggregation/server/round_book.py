"""The server's book of rounds: one file for each, whole or not at all, that a restart goes by.

A round is ``begun``, then ``announced`` before any client hears who the survivors are, then
``finished`` or ``abandoned``. Secrets and messages of a round are in memory or in files without
names, so that after a crash nothing of it can go on: the book then ends it. A round that was
announced counts among the opened ones for ever, finished or not, because its clients may have
answered.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import msgspec

from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.task import Tile
from vertikal.errors import InputError
from vertikal.files import private_folder, write_whole
from vertikal.records import check_format, from_json

FORMAT = 1

State = Literal["begun", "announced", "finished", "abandoned"]


class RoundRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Entry of the book about one round."""

    number: int
    reference: str
    state: State
    tile: Tile
    clients: int
    survivors: int = 0
    began: float
    seconds: float = 0.0
    received: int = 0
    sent: int = 0
    dropped: dict[str, int] = {}
    reason: str = ""
    format: int = FORMAT


class RoundBook:
    """All rounds of a store; the last ones in memory."""

    def __init__(self, store: Path, policy: RoundPolicy) -> None:
        self._folder = private_folder(private_folder(store) / "rounds")
        self._opened = OpenedRounds(store / "opened")
        self._policy = policy
        self.records: dict[int, RoundRecord] = {}
        for file in sorted(self._folder.glob("*.json")):
            record = self._read(file)
            if record.state in ("begun", "announced"):
                known = "" if record.state == "begun" else "; its sum may have been opened and lost"
                record = msgspec.structs.replace(
                    record, state="abandoned", reason=f"the server ended in its midst{known}"
                )
                self._write(record)
            self.records[record.number] = record

    def begin(self, reference: str, tile: Tile, clients: int) -> RoundRecord:
        """Give a round its number, on disk."""
        number = max(self.records, default=0) + 1
        record = RoundRecord(
            number=number,
            reference=reference,
            state="begun",
            tile=tile,
            clients=clients,
            began=time.time(),
        )
        self._write(record)
        return record

    def check(self, tile: Tile, clients: frozenset[str]) -> None:
        """Refuse a sum over these clients that could be subtracted from an opened one."""
        self._opened.check("server", self._policy, tile, clients, b"")

    def announce(self, record: RoundRecord, survivors: tuple[str, ...]) -> RoundRecord:
        """Write down who is in the sum, before anybody is told; refuse what may not be opened."""
        self.check(record.tile, frozenset(survivors))
        self._opened.add(record.tile, survivors, b"")
        record = msgspec.structs.replace(record, state="announced", survivors=len(survivors))
        self._write(record)
        return record

    def end(self, record: RoundRecord, state: State, reason: str = "") -> RoundRecord:
        """Finish or abandon a round."""
        record = msgspec.structs.replace(record, state=state, reason=reason[:500])
        self._write(record)
        return record

    def _write(self, record: RoundRecord) -> None:
        file = self._folder / f"{record.number:08d}.json"
        write_whole(file, msgspec.json.encode(record))
        self.records[record.number] = record

    @staticmethod
    def _read(file: Path) -> RoundRecord:
        raw = file.read_bytes()
        check_format(raw, FORMAT, f"round {file.name!r}")
        try:
            return from_json(raw, RoundRecord)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputError(f"round {file.name!r} of the store cannot be read: {error}") from None
