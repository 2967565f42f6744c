"""One lock per thing, and no wait for it without end."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from vertikal.errors import DeadlineExceeded


class KeyedLock:
    """Who uses one thing waits for its other users, for ``seconds`` at most, and for nobody else.

    >>> turns = KeyedLock(20.0)
    >>> with turns.of("accounts", "its table is being read"):
    ...     pass
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._locks: dict[Hashable, threading.Lock] = {}

    @contextmanager
    def of(self, name: Hashable, why: str, seconds: float | None = None) -> Iterator[None]:
        """The turn of who asks for ``name``; DeadlineExceeded with ``why`` if it never comes."""
        seconds = self._seconds if seconds is None else seconds
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        if not lock.acquire(timeout=seconds):
            raise DeadlineExceeded(f"{why}, for {seconds:.0f} s already; ask again later")
        try:
            yield
        finally:
            lock.release()
