"""Where the threads of one party wait for its peers: with a deadline, and with a word on whom."""

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
    """One lock for all that a party knows of its peers, and those who wait for it to change."""

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
        """Wait until ``ready``; called with the lock held, which `ready` is asked under."""
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
        """How each peer stands, as far as this party knows."""
        now = time.monotonic()
        with self.changed:
            return {
                name: status_of(pair, now, self.timing.silence)
                for name, pair in self._pairs.items()
            }

    def waits(self) -> list[Wait]:
        """What this party itself waits for at this moment."""
        with self.changed:
            return list(self._waits.values())

    def told(self) -> tuple[WaitReport, ...]:
        """The same, as the others are told."""
        now = time.monotonic()
        return tuple(
            WaitReport(wait.peer, wait.what[:MAX_TEXT], now - wait.since)
            for wait in self.waits()[:MAX_WAITS]
        )
