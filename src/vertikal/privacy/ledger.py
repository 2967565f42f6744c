"""The ledger: everything that left a party, and what its receiver learns from it.

A program declares what it discloses (`Disclosure`) and every frame is booked under one of these; a
frame without one does not leave the party.
"""

from __future__ import annotations

import html
import textwrap
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Disclosure:
    """One kind of message of a program.

    ``learns`` says, in a sentence for the owner of the data, what the final receiver can learn from
    it. ``masked`` messages are uniform to everyone on the way; only the sum is learned, by its
    receiver.
    """

    name: str
    what: str
    learns: str
    masked: bool


@dataclass(frozen=True)
class Entry:
    """Frames and bytes that one party sent another under one disclosure."""

    sender: str
    receiver: str
    disclosure: Disclosure
    frames: int
    bytes: int

    def row(self) -> dict[str, Any]:
        """As a plain dictionary, for a data frame or JSON."""
        return {
            "sender": self.sender,
            "receiver": self.receiver,
            "what": self.disclosure.what,
            "masked": self.disclosure.masked,
            "frames": self.frames,
            "bytes": self.bytes,
            "learns": self.disclosure.learns,
        }


@dataclass
class Ledger:
    """Entries by sender, receiver and disclosure. Prints as a table."""

    _booked: dict[tuple[str, str, Disclosure], tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def book(self, sender: str, receiver: str, disclosure: Disclosure, size: int) -> None:
        """Add one frame of ``size`` bytes."""
        key = (sender, receiver, disclosure)
        with self._lock:
            frames, total = self._booked.get(key, (0, 0))
            self._booked[key] = (frames + 1, total + size)

    @classmethod
    def joined(cls, ledgers: Iterable[Ledger]) -> Ledger:
        """The ledgers of several parties in one, as only a simulation can show it."""
        whole = cls()
        for ledger in ledgers:
            for key, (frames, size) in ledger._booked.items():
                before = whole._booked.get(key, (0, 0))
                whole._booked[key] = (before[0] + frames, before[1] + size)
        return whole

    def entries(self) -> list[Entry]:
        """All entries, largest first."""
        entries = [
            Entry(sender, receiver, disclosure, frames, size)
            for (sender, receiver, disclosure), (frames, size) in self._booked.items()
        ]
        return sorted(entries, key=lambda entry: (-entry.bytes, entry.sender, entry.receiver))

    @property
    def bytes(self) -> int:
        """All bytes in the ledger."""
        return sum(entry.bytes for entry in self.entries())

    def disclosures(self) -> list[Disclosure]:
        """The kinds of messages that occurred, each once."""
        return list(dict.fromkeys(entry.disclosure for entry in self.entries()))

    def rows(self) -> list[dict[str, Any]]:
        """The entries as plain dictionaries."""
        return [entry.row() for entry in self.entries()]

    def __str__(self) -> str:
        lines = []
        for entry in self.entries():
            form = "masked" if entry.disclosure.masked else "open"
            lines.append(
                f"{entry.sender + ' → ' + entry.receiver:<28} {entry.bytes:>14,} bytes  {form:<6}  "
                f"{entry.disclosure.what}"
            )
        for disclosure in self.disclosures():
            text = f"{disclosure.what}: {disclosure.learns}"
            lines.append(textwrap.fill(text, 100, initial_indent="  • ", subsequent_indent="    "))
        return "\n".join(lines) if lines else "nothing left any party"

    def _repr_html_(self) -> str:
        heads = ("from", "to", "what", "form", "frames", "bytes", "what the receiver learns")
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>"
            for cells in (
                (
                    entry.sender,
                    entry.receiver,
                    entry.disclosure.what,
                    "masked" if entry.disclosure.masked else "open",
                    f"{entry.frames:,}",
                    f"{entry.bytes:,}",
                    entry.disclosure.learns,
                )
                for entry in self.entries()
            )
        )
        head = "".join(f"<th>{name}</th>" for name in heads)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __getstate__(self) -> dict[str, Any]:
        return {"_booked": self._booked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._booked = state["_booked"]
        self._lock = threading.Lock()
