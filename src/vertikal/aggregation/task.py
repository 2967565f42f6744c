"""A task: what all clients of an aggregation sum, and the tile of it that one round is about.

The kernel of n rows has n² entries, of which a round sums one tile, so that a server and a client
hold no more than that at once. A tile on the diagonal travels as its upper half.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from vertikal.algorithms.gram.packing import packed_length, smallest_ring
from vertikal.errors import InputError
from vertikal.ring.integers import Ring

TILE = 2048
"""Rows and columns of a tile, unless the server's file says otherwise."""
MOST_TILE = 8192
MOST_ROWS = 1_000_000
MOST_COLUMNS = 1_000_000
LARGEST = 1 << 20

Number = Annotated[int, msgspec.Meta(ge=0, le=MOST_ROWS)]


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Inner products of rows over the columns of all clients.

    ``kind`` "ratings": a client has one column of zeros and ones, the items that it has rated.
    "columns": it has up to ``columns`` columns of whole numbers up to ``largest`` in magnitude.
    ``most_clients`` bounds the sum, and with it the ring.
    """

    kind: Literal["ratings", "columns"]
    rows: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)]
    columns: Annotated[int, msgspec.Meta(ge=1, le=MOST_COLUMNS)] = 1
    largest: Annotated[int, msgspec.Meta(ge=1, le=LARGEST)] = 1
    most_clients: Annotated[int, msgspec.Meta(ge=2, le=10_000)] = 10_000
    tile: Annotated[int, msgspec.Meta(ge=1, le=MOST_TILE)] = TILE

    def __post_init__(self) -> None:
        if self.kind == "ratings" and (self.columns, self.largest) != (1, 1):
            raise InputError.of(
                "task", "one column of zeros and ones for ratings", (self.columns, self.largest)
            )
        smallest_ring(self.columns * self.most_clients, self.largest)

    @property
    def ring(self) -> Ring:
        """The smallest ring that holds every entry of the kernel."""
        return smallest_ring(self.columns * self.most_clients, self.largest)

    def tiles(self) -> Iterator[Tile]:
        """Yield the tiles on and above the diagonal."""
        starts = range(0, self.rows, self.tile)
        for number, top in enumerate(starts):
            for left in starts[number:]:
                yield self.tile_at(top, left)

    def tile_at(self, top: int, left: int) -> Tile:
        return Tile(top, min(top + self.tile, self.rows), left, min(left + self.tile, self.rows))


class Tile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """Rows ``top`` to ``bottom`` with rows ``left`` to ``right``, both without the last."""

    top: Number
    bottom: Number
    left: Number
    right: Number

    @property
    def diagonal(self) -> bool:
        return self.top == self.left

    @property
    def length(self) -> int:
        """Ring elements of the tile as it travels."""
        return packed_length(self.bottom - self.top, self.right - self.left, self.diagonal)

    def overlaps(self, other: Tile) -> bool:
        """Return True if some entry of the kernel, which is symmetric, is in both tiles."""
        mirrored = Tile(other.left, other.right, other.top, other.bottom)
        return any(
            max(self.top, one.top) < min(self.bottom, one.bottom)
            and max(self.left, one.left) < min(self.right, one.right)
            for one in (other, mirrored)
        )

    def check(self, task: Task) -> None:
        """Refuse a tile that is none of this task, or of a later one with more rows."""
        grown = self.bottom <= MOST_ROWS and self.right <= MOST_ROWS
        whole = self.top % task.tile == 0 == self.left % task.tile
        sizes = 0 < self.bottom - self.top <= task.tile, 0 < self.right - self.left <= task.tile
        if not (grown and whole and all(sizes) and self.top <= self.left):
            raise InputError.of("tile", f"one of {task.rows} rows cut at {task.tile}", self)
