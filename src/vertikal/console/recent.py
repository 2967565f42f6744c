"""Answers that several pages share: what was asked a moment ago is not asked again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any


class Recent:
    """Results by key, each good for some seconds; of one key, one thread at a time makes it."""

    def __init__(self, life: float) -> None:
        self._life = life
        self._lock = threading.Lock()
        self._making: dict[Any, threading.Lock] = {}
        self._made: dict[Any, tuple[float, Any]] = {}

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the result of this key, made anew if it is old; what raises is not kept."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                made = self._made.get(key)
            if made is not None and time.monotonic() - made[0] < self._life:
                return made[1]
            result = make()
            with self._lock:
                self._made[key] = time.monotonic(), result
                self._tidy()
            return result

    def forget(self) -> None:
        """Make everything anew when it is next asked for."""
        with self._lock:
            self._made.clear()

    def _tidy(self) -> None:
        now = time.monotonic()
        self._made = {one: kept for one, kept in self._made.items() if now - kept[0] < self._life}
        self._making = {
            one: lock for one, lock in self._making.items() if one in self._made or lock.locked()
        }
