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
        self._offset = 0
        self._file = -1

    def lines(self, path: Path) -> list[Line]:
        """Return all lines, oldest first; another file in its place is read from its beginning."""
        with self._lock:
            if not path.exists():
                return []
            found = path.stat()
            if found.st_ino != self._file or found.st_size < self._offset:
                self._lines, self._offset, self._file = [], 0, found.st_ino
            fresh, self._offset = read_on(path, self._offset)
            self._lines += fresh
            return list(self._lines)
