"""The daily limit of predictions: rows predicted so far today, on disk, whatever restarts."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime
from pathlib import Path

from vertikal.errors import PeerVisibleError
from vertikal.files import write_whole

_BOOKED = re.compile(r"\d{4}-\d\d-\d\d [0-9]{1,18}", re.ASCII)


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
            day, spent = self._spent(today)
            if spent + rows > self._most:
                later = f"after {day}, the latest day booked" if day > today else "tomorrow"
                raise PeerVisibleError(
                    f"{rows} rows asked for, {spent} of {self._most} a day are used; ask again "
                    f"{later}, or let the owner raise predictions_per_day"
                )
            write_whole(self._path, f"{day} {spent + rows}".encode())

    def _spent(self, today: str) -> tuple[str, int]:
        """Return the day that counts and its rows so far.

        A clock that was set back begins no new day: the latest day that was booked goes on.
        """
        try:
            text = self._path.read_text("utf-8", "replace")
        except FileNotFoundError:
            return today, 0
        if not _BOOKED.fullmatch(text):
            raise PeerVisibleError(
                f"the count of rows predicted today cannot be read, so the whole limit counts as "
                f"used; the owner must look at the file {self._path.name!r} of the store and "
                "remove it"
            )
        day, count = text.split(" ")
        if day > today:
            return day, int(count)
        return today, int(count) if day == today else 0
