"""How many rows a party has predicted today, on disk, so that a restart forgets nothing."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

from vertikal.node.files import write_whole
from vertikal.node.public_words import Told


class DailyLimit:
    """At most ``most`` rows a day (UTC)."""

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = most
        self._lock = threading.Lock()

    def spend(self, rows: int) -> None:
        """Book these rows, or refuse them all."""
        with self._lock:
            today = datetime.now(UTC).strftime("%Y-%m-%d")
            spent = self.spent(today)
            if spent + rows > self._most:
                raise Told(
                    f"{rows} rows asked for, {spent} of {self._most} a day are used; ask again "
                    "tomorrow, or let the owner raise predictions_per_day"
                )
            write_whole(self._path, f"{today} {spent + rows}".encode(), durable=False)

    def spent(self, today: str) -> int:
        """Rows of this day so far."""
        try:
            day, _, count = self._path.read_text().partition(" ")
        except FileNotFoundError:
            return 0
        return int(count) if day == today else 0
