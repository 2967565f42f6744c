"""Letters: short messages between neighbours that the server keeps until they are called for.

Encrypted shares, confirmations and the shares that open a sum are one letter of fixed size for each
pair of neighbours, n·k of them in all. A server of many clients keeps them elsewhere than in memory
(`aggregation.server.letters_on_disk`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vertikal.secure.secagg.neighbours import Neighbours


class Letters(Protocol):
    """Letters of one stage. Only neighbours, and a client to itself, can write to one another."""

    def put(self, sender: str, letters: Mapping[str, bytes]) -> None:
        """Keep the letters of ``sender``, by receiver; others than its neighbours are left out."""

    def to(self, receiver: str) -> dict[str, bytes]:
        """Return the letters to ``receiver``, by sender."""


class LettersInMemory:
    """Letters in dictionaries, for few clients."""

    def __init__(self, graph: Neighbours, size: int) -> None:
        self._graph = graph
        self._kept: dict[str, dict[str, bytes]] = {}

    def put(self, sender: str, letters: Mapping[str, bytes]) -> None:
        for receiver, letter in letters.items():
            if self._graph.slot(receiver, sender) is not None:
                self._kept.setdefault(receiver, {})[sender] = letter

    def to(self, receiver: str) -> dict[str, bytes]:
        return dict(self._kept.get(receiver, {}))
