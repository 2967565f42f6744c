"""Measurement of the links to the other parties, by a few control messages."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from vertikal.node.links.messages import Probe

LOAD = 128 << 10
"""Bytes of one loaded probe."""
COUNT = 8
"""Loaded probes in one measurement."""
TRIES = 3
"""Messages without a load in one measurement."""
_WAIT = 5.0
"""Seconds after which an answer is given up."""


class LinkMeter:
    """Sends probes and times the answers."""

    def __init__(self, tell: Callable[[str, Probe], None]) -> None:
        self._tell = tell
        self._changed = threading.Condition()
        self._answers: set[tuple[str, int]] = set()
        self._next = 0

    def hear(self, sender: str, probe: Probe) -> None:
        """Answer a peer's probe, or take in its answer to one of this party's."""
        if not probe.answer:
            self._tell(sender, Probe(probe.number, b"", True))
            return
        with self._changed:
            self._answers.add((sender, probe.number))
            self._changed.notify_all()

    def measure(self, peer: str) -> tuple[float, float] | None:
        """Return (seconds there and back, bytes a second there), or None if no answer comes."""
        rounds = [self._round(peer, [b""]) for _ in range(TRIES)]
        # The fastest: the others waited for something else on this machine.
        empty = min((one for one in rounds if one is not None), default=None)
        loaded = self._round(peer, [os.urandom(LOAD)] * COUNT)
        if empty is None or loaded is None:
            return None
        return empty, COUNT * LOAD / max(1e-6, loaded - empty)

    def _round(self, peer: str, loads: list[bytes]) -> float | None:
        """Send these loads; returns the seconds until all are answered."""
        began = time.monotonic()
        numbers = []
        for load in loads:
            with self._changed:
                self._next += 1
                number = self._next
            numbers.append((peer, number))
            self._tell(peer, Probe(number, load))
        with self._changed:
            while not self._answers.issuperset(numbers):
                if time.monotonic() - began > _WAIT:
                    return None
                self._changed.wait(0.2)
            self._answers.difference_update(numbers)
        return time.monotonic() - began
