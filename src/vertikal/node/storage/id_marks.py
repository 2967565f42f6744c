"""Marks of ids: keyed digests by which a party recognises a person in its own files.

Files of the store keep marks in place of ids. The key never leaves the store, so that a file that
gets out by itself tells nobody who is in it.
"""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from vertikal.files import write_new

MARK_BYTES = 8


class IdMarks:
    """Marks under the key of one folder; the key is drawn when the folder has none."""

    def __init__(self, folder: Path) -> None:
        path = folder / ".key"
        if not path.exists():
            # Never over a key that another process has just written: marks under two keys could
            # not be compared.
            write_new(path, os.urandom(32))
        self._key = path.read_bytes()

    def mark(self, one: bytes) -> bytes:
        """Return the mark of an id in its written form."""
        return hmac.digest(self._key, one, "sha256")[:MARK_BYTES]
