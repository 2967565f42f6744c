"""The waits of one party's threads for its peers: each has a deadline, and names the peer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from vertikal.errors import DeadlineExceeded
from vertikal.mesh.packets.envelope import MAX_TEXT, MAX_WAITS, WaitReport
from vertikal.mesh.packets.pair import Pair
from vertikal.mesh.packets.peer_status import PeerStatus, Wait, chain, failure_of, status_of


@dataclass(frozen=True)
class Timing:
    """Seconds: between heartbeats, until silence is remarkable, until a broken link is given up."""

    heartbeat: float = 1.0
    silence: float = 10.0
    patience: float = 30.0


class WaitingRoom:
    """One lock over all that a party knows of its peers, and the threads that wait for a change."""

    def __init__(
        self, me: str, pairs: Mapping[str, Pair], timing: Timing, excused: Set[str] = frozenset()
    ) -> None:
        self.changed = threading.Condition()
        self.timing = timing
        self._me = me
        self._pairs = pairs
        self._excused = excused
        self._waits: dict[int, Wait] = {}

    def until(self, ready: Callable[[], bool], peer: str, what: str, timeout: float) -> None:
        """Wait until ``ready()``, which is called under the lock; the caller holds it."""
        if ready():
            return
        wait = Wait(peer, what, time.monotonic())
        self._waits[threading.get_ident()] = wait
        try:
            while not ready():
                statuses, patience = self.status(), self.timing.patience
                failure = failure_of(self._me, wait, self._pairs, patience, statuses, self._excused)
                if failure is not None:
                    raise failure
                left = wait.since + timeout - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded(
                        f"{self._me}: nothing from {peer} for {what} within {timeout:g} s; "
                        f"{chain(self._me, wait, self.status())}"
                    )
                self.changed.wait(min(left, self.timing.heartbeat))
        finally:
            del self._waits[threading.get_ident()]

    def status(self) -> dict[str, PeerStatus]:
        """The status of each peer, as far as this party knows."""
        now = time.monotonic()
        with self.changed:
            return {
                name: status_of(pair, now, self.timing.silence)
                for name, pair in self._pairs.items()
            }

    def waits(self) -> list[Wait]:
        """The waits of this party itself at this moment."""
        with self.changed:
            return list(self._waits.values())

    def told(self) -> tuple[WaitReport, ...]:
        """The same waits, in the form in which the others are told."""
        now = time.monotonic()
        return tuple(
            WaitReport(wait.peer, wait.what[:MAX_TEXT], now - wait.since)
            for wait in self.waits()[:MAX_WAITS]
        )
