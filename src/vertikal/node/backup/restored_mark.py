"""The mark that a restore leaves in a store, for the service that starts on it.

A module of its own, since every service looks for it at its start.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from vertikal.files import sync_folder
from vertikal.records import from_json

MARK = "restored.json"


class RestoredMark(msgspec.Struct, frozen=True):
    """The mark in a restored store, until its service has ended the jobs that were open."""

    format: int
    backup: str
    """Time at which the backup was made."""
    worst: bool = True
    """False if nothing happened since, by the owner's word."""


def restored_mark(store: Path) -> RestoredMark | None:
    """Read the mark that a restore has left, until `forget_mark`."""
    try:
        return from_json((store / MARK).read_bytes(), RestoredMark)
    except FileNotFoundError:
        return None


def forget_mark(store: Path) -> None:
    """Remove the mark, once the jobs that were open are ended."""
    (store / MARK).unlink(missing_ok=True)
    sync_folder(store)
