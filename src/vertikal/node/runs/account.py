"""The account of one party's training, as a JSON file: what left the party, and where time went."""

from __future__ import annotations

from pathlib import Path

import msgspec

from vertikal.errors import InputError
from vertikal.files import move_over
from vertikal.party.clock import Stage
from vertikal.party.party import Party
from vertikal.privacy.ledger import Entry
from vertikal.records import from_json


class Account(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One party's ledger and the stages of its clock."""

    party: str
    ledger: tuple[Entry, ...]
    stages: dict[str, Stage]

    @classmethod
    def of(cls, party: Party) -> Account:
        return cls(party.name, tuple(party.ledger.entries()), party.clock.stages)

    @property
    def seconds(self) -> float:
        """Over all stages; waiting for others is included."""
        return sum(stage.seconds for stage in self.stages.values())

    @property
    def bytes_sent(self) -> int:
        return sum(stage.bytes_sent for stage in self.stages.values())


def write_account(account: Account, path: Path) -> None:
    """Write an account; an older one of this name is replaced, once this one is whole."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        move_over(path, msgspec.json.format(msgspec.json.encode(account)) + b"\n", durable=False)
    except OSError as error:
        raise InputError(f"account {path.name!r} cannot be written: {error.strerror}") from None


def read_account(path: Path) -> Account:
    """The account in this file."""
    try:
        return from_json(path.read_bytes(), Account)
    except OSError as error:
        raise InputError(f"account {path.name!r} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise InputError(f"account {path.name!r} is not an account: {error}") from None
