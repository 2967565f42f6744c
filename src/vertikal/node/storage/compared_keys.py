"""Marks of the keys that the owner has compared by other means than the network.

A mark is about one pair of keys, this party's and a peer's. When either has another key, the mark
does not hold any more, and the two have to compare again.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from vertikal.files import write_whole
from vertikal.node.config.federation_file import FederationFile
from vertikal.records import from_json


class _Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One comparison: this party's fingerprint, the peer's, and when."""

    peer: str
    mine: str
    theirs: str
    when: float


class ComparedKeys:
    """The file of marks in one party's store; commands and the service read it at every use."""

    def __init__(self, store: Path, me: str) -> None:
        self._path = store / "compared.json"
        self._me = me

    def mark(self, federation: FederationFile, peer: str) -> None:
        """Remember that the present keys of this party and ``peer`` were compared."""
        mine, theirs = self._pair(federation, peer)
        kept = [one for one in self._marks() if (one.mine, one.theirs) != (mine, theirs)]
        marks = [*kept, _Mark(peer, mine, theirs, time.time())]
        write_whole(self._path, msgspec.json.encode(marks))

    def compared_on(self, federation: FederationFile, peer: str) -> float | None:
        """Time at which the present keys of both parties were compared; None if never."""
        pair = self._pair(federation, peer)
        for one in self._marks():
            if (one.peer, one.mine, one.theirs) == (peer, *pair):
                return one.when
        return None

    def missing(self, federation: FederationFile) -> list[str]:
        """The other parties whose present keys were not compared with this party's."""
        return [
            name
            for name in federation.names
            if name != self._me and self.compared_on(federation, name) is None
        ]

    def _pair(self, federation: FederationFile, peer: str) -> tuple[str, str]:
        return federation.member(self._me).fingerprint, federation.member(peer).fingerprint

    def _marks(self) -> list[_Mark]:
        try:
            return from_json(self._path.read_bytes(), list[_Mark])
        except (OSError, msgspec.DecodeError):
            # Without its file nothing counts as compared, and the owner is told so.
            return []
