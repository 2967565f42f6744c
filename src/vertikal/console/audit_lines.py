"""The lines of an audit log, kept in memory while the log grows."""

from __future__ import annotations

import threading
from pathlib import Path

from vertikal.node.storage.audit_log import Line, read_on


class AuditLines:
    """Reads of a log only what was written since it was last read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[Line] = []
        self._of_job: dict[str, list[Line]] = {}
        self._offset = 0
        self._file = -1

    def lines(self, path: Path) -> list[Line]:
        """Return all lines, oldest first; another file in its place is read from its beginning."""
        with self._lock:
            self._read_on(path)
            return list(self._lines)

    def lines_of(self, path: Path, digest: str) -> list[Line]:
        """Return the lines about the job of this digest, oldest first."""
        with self._lock:
            self._read_on(path)
            return list(self._of_job.get(digest, ()))

    def _read_on(self, path: Path) -> None:
        found = path.stat() if path.exists() else None
        if found is None or found.st_ino != self._file or found.st_size < self._offset:
            self._lines, self._of_job, self._offset = [], {}, 0
            self._file = -1 if found is None else found.st_ino
        if found is None:
            return
        fresh, self._offset = read_on(path, self._offset)
        self._lines += fresh
        for line in fresh:
            self._of_job.setdefault(str(line.facts.get("digest", "")), []).append(line)
