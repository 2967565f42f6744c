"""Results that somebody has asked for and may keep: scores, for the session that asked."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from typing import Any

from vertikal.console.sessions import Session

MOST = 20
"""Results that are kept; then the oldest goes."""


@dataclass
class Results:
    """Rows of scores by a random name; only the session that asked for them finds them."""

    _kept: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, session: Session, rows: list[dict[str, Any]]) -> str:
        """Keep rows; return their name."""
        name = secrets.token_hex(8)
        with self._lock:
            self._kept[session.digest, name] = rows
            while len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
        return name

    def find(self, session: Session, name: str) -> list[dict[str, Any]] | None:
        with self._lock:
            return self._kept.get((session.digest, name))
