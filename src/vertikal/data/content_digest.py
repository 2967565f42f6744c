"""The digest of a table's content, by which owners notice that it is not what they approved.

Each column has three hashes: of which cells are there, of their values, and of their lengths. So it
does not matter how the rows are cut into blocks. Names and kinds of cells enter at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from vertikal.data.cells import NOTHING, NUMBER, integers, kind_of, numbers, plain


class ContentDigest:
    """SHA-256 of named columns, fed with record batches that have them in this order."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._kinds: list[dict[str, None]] = [{} for _ in columns]  # in order, each once
        self._parts = [[hashlib.sha256() for _ in range(3)] for _ in columns]
        self._rows = 0

    def update(self, batch: Any) -> None:
        """Take in the next rows."""
        self._rows += batch.num_rows
        for place, cells in enumerate(batch.columns):
            there, values, lengths = self._parts[place]
            kind = kind_of(cells)
            self._kinds[place][kind] = None
            there.update(np.asarray(cells.is_valid()).astype(np.uint8).tobytes())
            if kind in (NUMBER, NOTHING):
                # NaN has many forms, and stands for one thing.
                found = numbers(cells)
                values.update(np.where(np.isnan(found), np.nan, found).astype("<f8").tobytes())
                # Whole numbers beyond 2^53 differ where their doubles do not.
                lengths.update(integers(cells).astype("<i8").tobytes())
            else:
                raw = [str(cell).encode() for cell in plain(cells).to_pylist()]
                values.update(b"".join(raw))
                lengths.update(np.array([len(one) for one in raw], "<i8").tobytes())

    def hexdigest(self) -> str:
        whole = hashlib.sha256()
        for name, kinds, parts in zip(self._columns, self._kinds, self._parts, strict=True):
            for word in (name, *sorted(kinds)):
                whole.update(len(word.encode()).to_bytes(4, "big") + word.encode())
            for part in parts:
                whole.update(part.digest())
        whole.update(self._rows.to_bytes(8, "big"))
        return whole.hexdigest()
