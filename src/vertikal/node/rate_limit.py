"""A limit on how much of something is taken in a stretch of time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class RateLimit:
    """At most ``most`` in ``seconds``, all of it at once after that long without any.

    With 60 in a minute, 60 may come together; then one more each second.
    """

    def __init__(
        self, most: float, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._left = float(most)
        self._when = clock()
        self._lock = threading.Lock()

    def take(self, amount: float = 1) -> bool:
        """Count ``amount`` more; False, and nothing is counted, if that is beyond the limit."""
        with self._lock:
            now = self._clock()
            regained = (now - self._when) * self._most / self._seconds
            self._left = min(self._most, self._left + regained)
            self._when = now
            if self._left < amount:
                return False
            self._left -= amount
            return True
