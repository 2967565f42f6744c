"""Questions for the catalogue between services: asked, answered, waited for until a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from vertikal.node.approval.catalog import NONE, CatalogEntry, OwnCatalog, made_printable
from vertikal.node.links.messages import CatalogAsked, CatalogTold
from vertikal.node.rate_limit import RateLimit
from vertikal.node.storage.party_home import PartyHome

WAIT = 5.0
"""Seconds that answers are waited for."""
QUESTIONS = (60, 3600.0)
"""Questions of one peer that are answered: so many, in so many seconds."""


class CatalogExchange:
    """Asks the peers what they offer, and answers those who ask."""

    def __init__(
        self,
        home: PartyHome,
        own: OwnCatalog,
        tell: Callable[[str, CatalogAsked | CatalogTold], None],
    ) -> None:
        self._home = home
        self._own = own
        self._tell = tell
        self._changed = threading.Condition()
        self._number = 0
        self._wanted: set[tuple[str, int]] = set()
        self._answers: dict[tuple[str, int], CatalogEntry] = {}
        self._limits: dict[str, RateLimit] = {}

    def ask(self, peers: Sequence[str]) -> dict[str, CatalogEntry | None]:
        """Ask these peers; None for each that has not answered after `WAIT`."""
        with self._changed:
            self._number += 1
            wanted = {(peer, self._number) for peer in peers}
            self._wanted |= wanted
            number = self._number
        try:
            for peer in peers:
                self._tell(peer, CatalogAsked(number))
            until = time.monotonic() + WAIT
            with self._changed:
                while not self._answers.keys() >= wanted and (rest := until - time.monotonic()) > 0:
                    self._changed.wait(rest)
                return {peer: self._answers.get((peer, number)) for peer in peers}
        finally:
            with self._changed:
                self._wanted -= wanted
                for one in wanted:
                    self._answers.pop(one, None)

    def answer(self, peer: str, question: CatalogAsked) -> None:
        """Answer a peer as the policy allows, and write that to the audit log."""
        limit = self._limits.setdefault(peer, RateLimit(*QUESTIONS))
        if not limit.take():
            return
        entry = self._own.entry(peer)
        if entry.level == NONE:
            self._home.note_refusal(peer, "it asked for the catalogue, which it may not read")
        else:
            self._home.log.record("catalogue told", peer=peer, level=entry.level)
        self._tell(peer, CatalogTold(question.number, entry))

    def hear(self, peer: str, answer: CatalogTold) -> None:
        """Take in an answer; one that nobody waits for is dropped."""
        with self._changed:
            if (peer, answer.number) in self._wanted:
                self._answers[peer, answer.number] = made_printable(answer.entry)
                self._changed.notify_all()
