"""The daily limit of predictions: rows predicted so far today, on disk, whatever restarts."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime
from pathlib import Path

from vertikal.errors import PeerVisibleError
from vertikal.files import write_whole

_BOOKED = re.compile(r"\d{4}-\d\d-\d\d [0-9]{1,18}(?: [0-9]{1,18})?", re.ASCII)


class DailyLimit:
    """At most ``most`` rows a day (UTC).

    Rows that came to nothing are given back, as many a day as the limit: who asks learns of them
    which ids are known here, and could otherwise ask for ever and break off.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = most
        self._lock = threading.Lock()

    def spend(self, rows: int) -> None:
        """Book these rows, or refuse them all."""
        with self._lock:
            today = datetime.now(UTC).strftime("%Y-%m-%d")
            day, spent, returned = self._booked(today)
            if spent + rows > self._most:
                later = f"after {day}, the latest day booked" if day > today else "tomorrow"
                refusal = PeerVisibleError(
                    f"{rows} rows asked for, {spent} of {self._most} a day are used; ask again "
                    f"{later}, or let the owner raise predictions_per_day"
                )
                refusal.rows_left = max(0, self._most - spent)
                raise refusal
            self._write(day, spent + rows, returned)

    def spend_all(self) -> None:
        """Book all rows of today, as if none had been left, and none to give back."""
        with self._lock:
            self._write(datetime.now(UTC).strftime("%Y-%m-%d"), self._most, self._most)

    def give_back(self, rows: int) -> None:
        """Undo the booking of rows of which nothing was computed."""
        with self._lock:
            day, spent, returned = self._booked(datetime.now(UTC).strftime("%Y-%m-%d"))
            rows = max(0, min(rows, spent, self._most - returned))
            if rows:
                self._write(day, spent - rows, returned + rows)

    def _write(self, day: str, spent: int, returned: int) -> None:
        write_whole(self._path, f"{day} {spent} {returned}".encode())

    def _booked(self, today: str) -> tuple[str, int, int]:
        """Return the day that counts, its rows so far, and those that were given back.

        A clock that was set back begins no new day: the latest day that was booked goes on.
        """
        try:
            text = self._path.read_text("utf-8", "replace")
        except FileNotFoundError:
            return today, 0, 0
        if not _BOOKED.fullmatch(text):
            raise PeerVisibleError(
                f"the count of rows predicted today cannot be read, so the whole limit counts as "
                f"used; the owner must look at the file {self._path.name!r} of the store and "
                "remove it"
            )
        day, *counts = text.split(" ")
        spent, returned = (*map(int, counts), 0)[:2]
        return (day, spent, returned) if day >= today else (today, 0, 0)
