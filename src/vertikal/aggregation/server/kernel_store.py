"""The kernel that a server has learned: one file per tile, of which one at a time is in memory.

Counts of ratings only improve (`ServerKernel` of FedCFK): the larger of the old and the new count
is kept. Sums of columns are those of the last round.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.aggregation.task import Task, Tile
from vertikal.algorithms.gram.packing import unpacked
from vertikal.errors import InputError
from vertikal.files import private_folder, write_whole
from vertikal.kernels.dot_product import normalised

Array = npt.NDArray[Any]


class KernelStore:
    """Tiles of inner products on and above the diagonal."""

    def __init__(self, store: Path, task: Task) -> None:
        self._folder = private_folder(store / "kernel")
        self.task = task
        self._means: Array | None = None

    def improve(self, tile: Tile, total: Array, survivors: int) -> None:
        """Take the sum of a round; refuse counts that no ratings of so many users give."""
        rows, others = tile.bottom - tile.top, tile.right - tile.left
        ring = self.task.ring
        if tile.diagonal:
            values = unpacked(total, rows, ring)
        else:
            values = total.view(f"int{ring.bits}").astype(np.int64).reshape(rows, others)
        if self.task.kind == "ratings":
            if values.size and not 0 <= values.min() <= values.max() <= survivors:
                raise InputError.of(
                    "sum", f"counts from 0 to {survivors}; some client sent no ratings", "others"
                )
            old = self.tile(tile)
            known = values[: old.shape[0], : old.shape[1]]
            np.maximum(known, old, out=known)
        memory = io.BytesIO()
        np.save(memory, values, allow_pickle=False)
        write_whole(self._file(tile), memory.getvalue())
        self._means = None

    def tile(self, tile: Tile) -> Array:
        """Find what is known of a tile, (rows, others) or fewer of them if these are new.

        It lies in its file, from which entries are read as they are used.
        """
        file = self._file(tile)
        if not file.exists():
            return np.zeros((0, 0), np.int64)
        found: Array = np.load(file, mmap_mode="r", allow_pickle=False)
        return found[: tile.bottom - tile.top, : tile.right - tile.left]

    def lengths(self) -> Array:
        """Inner products of rows with themselves: of ratings how many users rated each item."""
        lengths = np.zeros(self.task.rows, np.int64)
        for tile in self.task.tiles():
            if tile.diagonal:
                known = self.tile(tile).diagonal()
                lengths[tile.top : tile.top + len(known)] = known
        return lengths

    def row_means(self) -> Array:
        """Means of the rows of the normalised kernel, over all rows."""
        if self._means is None or len(self._means) != self.task.rows:
            lengths = self.lengths()
            sums = np.zeros(self.task.rows)
            for tile in self.task.tiles():
                known = self.tile(tile)
                top = slice(tile.top, tile.top + known.shape[0])
                side = slice(tile.left, tile.left + known.shape[1])
                values = normalised(known, lengths[top], lengths[side])
                sums[top] += values.sum(axis=1)
                if not tile.diagonal:
                    sums[side] += values.sum(axis=0)
            self._means = sums / self.task.rows
        return self._means

    def rows(self, items: list[int]) -> Array:
        """Rows of the normalised kernel, (items, rows) float64."""
        chosen = np.asarray(items, np.int64)
        values = np.zeros((len(chosen), self.task.rows))
        for tile in self.task.tiles():
            down = (chosen >= tile.top) & (chosen < tile.bottom)
            across = (chosen >= tile.left) & (chosen < tile.right) & (not tile.diagonal)
            if not (down | across).any():
                continue
            known = np.zeros((tile.bottom - tile.top, tile.right - tile.left), np.int64)
            old = self.tile(tile)
            known[: old.shape[0], : old.shape[1]] = old
            values[down, tile.left : tile.right] = known[chosen[down] - tile.top]
            values[across, tile.top : tile.bottom] = known.T[chosen[across] - tile.left]
        lengths = self.lengths()
        return normalised(values, lengths[chosen], lengths)

    def _file(self, tile: Tile) -> Path:
        return self._folder / f"{tile.top:07d}-{tile.left:07d}.npy"
