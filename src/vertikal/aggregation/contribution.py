"""A client's numbers: its columns of all rows, and their inner products for one tile."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.aggregation.task import Task, Tile
from vertikal.algorithms.gram.packing import packed_tile
from vertikal.errors import InputError
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]


class Contribution:
    """Columns (rows, own columns) of whole numbers, checked before anything leaves the client."""

    def __init__(self, columns: Any, task: Task) -> None:
        block = np.asarray(columns)
        block = block[:, None] if block.ndim == 1 else block
        if block.ndim != 2 or block.dtype.kind not in "iuf" or not np.isfinite(block).all():
            raise InputError.of("columns", "finite numbers in one or two dimensions", block.dtype)
        whole = np.rint(block)
        wrong = (whole != block) | (np.abs(whole) > task.largest)
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            raise InputError.of(
                "columns",
                f"whole numbers of at most {task.largest} in magnitude",
                f"{block[row, column]} in row {row + 1}",
            )
        if task.kind == "ratings" and block.min(initial=0) < 0:
            raise InputError.of("ratings", "0 or 1", "negative numbers")
        if block.shape[1] > task.columns:
            raise InputError.of("columns", f"at most {task.columns} of a client", block.shape[1])
        if task.kind == "columns" and len(block) != task.rows:
            raise InputError.of("columns", f"of {task.rows} rows", len(block))
        self._block = whole.astype(np.int64)

    @classmethod
    def of_items(cls, items: Iterable[int], task: Task) -> Contribution:
        """Make the column of a user that has rated the items of these numbers."""
        rated = np.zeros(task.rows, np.int64)
        chosen = np.fromiter(items, np.int64)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < task.rows:
            raise InputError.of("items", f"numbers below {task.rows}", int(chosen.max()))
        rated[chosen] = 1
        return cls(rated, task)

    @property
    def digest(self) -> bytes:
        """Digest of the numbers; rows of zeros at the end, such as new items, change nothing."""
        used = np.flatnonzero(self._block.any(axis=1))
        last = used[-1] + 1 if len(used) else 0
        kept = np.ascontiguousarray(self._block[:last])
        return hashlib.sha256(kept.shape[1].to_bytes(8, "big") + kept.tobytes()).digest()

    def products(self, tile: Tile, ring: Ring) -> Array:
        """Compute the inner products of a tile; rows that this client does not know are zero."""
        top = self._rows(tile.top, tile.bottom)
        side = None if tile.diagonal else self._rows(tile.left, tile.right)
        return packed_tile(top, side, ring)

    def _rows(self, start: int, stop: int) -> Array:
        known = self._block[start:stop]
        missing = np.zeros((stop - start - len(known), self._block.shape[1]), np.int64)
        return np.concatenate((known, missing))
