"""One lock per key, with a limit on every wait."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from vertikal.errors import DeadlineExceeded


class KeyedLock:
    """Users of one key wait for one another, ``seconds`` at most; other keys are not held up.

    >>> locks = KeyedLock(20.0)
    >>> with locks.hold("accounts", "its table is being read"):
    ...     pass
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._locks: dict[Hashable, threading.Lock] = {}

    @contextmanager
    def hold(self, key: Hashable, reason: str, seconds: float | None = None) -> Iterator[None]:
        """Hold the lock of ``key``; DeadlineExceeded with ``reason`` if it does not get free."""
        seconds = self._seconds if seconds is None else seconds
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        if not lock.acquire(timeout=seconds):
            raise DeadlineExceeded(f"{reason}, for {seconds:.0f} s already; ask again later")
        try:
            yield
        finally:
            lock.release()
