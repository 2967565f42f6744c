"""The log of a service: lines on standard output, and JSON in files that are rotated.

A JSON line has ``time`` (UTC, with its date), ``party`` and ``words``. The files are readable by
their owner only. A log that cannot be written is no reason to stop: the service goes on in silence.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import msgspec

from vertikal.errors import InputError
from vertikal.node.config.party_file import Log

TEXT, JSON = "text", "json"


class ServiceLog:
    """The places where one party's service says something."""

    def __init__(self, party: str, folder: Path, settings: Log) -> None:
        self._party = party
        self._settings = settings
        self._file: _PrivateFiles | None = None
        if settings.file is not None:
            path = folder / settings.file
            try:
                self._file = _PrivateFiles(path, settings.most_bytes, settings.keep)
            except OSError as error:
                raise InputError(
                    f"[log] file {settings.file!r} cannot be written: {error.strerror}; make its "
                    "folder, or name another file"
                ) from None

    def say(self, words: str) -> None:
        """Write a line everywhere; where nobody reads any more, go on."""
        line = self._json(words)
        shown = line if self._settings.output == JSON else f"{time.strftime('%H:%M:%S')} {words}"
        # One write per line, so that the lines of several threads stay whole.
        with suppress(OSError, ValueError):
            sys.stdout.write(f"{shown}\n")
            sys.stdout.flush()
        if self._file is not None:
            self._file.handle(logging.makeLogRecord({"msg": line}))

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def _json(self, words: str) -> str:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return msgspec.json.encode({"time": now, "party": self._party, "words": words}).decode()


class _PrivateFiles(RotatingFileHandler):
    """Files of at most so many bytes, the older ones numbered; mode 600."""

    def __init__(self, path: Path, most_bytes: int, keep: int) -> None:
        super().__init__(path, maxBytes=most_bytes, backupCount=keep, encoding="utf-8")

    def _open(self) -> Any:
        number = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(number, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Go on in silence, as on a full disk."""
