"""The memory of large arrays, used again as long as a run lasts.

A pass makes thousands of arrays of a few megabytes, each gone before long. Memory that the system
hands out costs at the first touch of every page, on virtual machines more than the work on it; what
an allocator gets back goes to the system again. So large arrays come from here: when one of them
and all views of it are gone, its memory serves the next of about its size. After the last run at
most `LASTING` of it is left for the next.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
_Blocks: TypeAlias = "deque[memoryview]"

SMALLEST = 1 << 18
"""Bytes from which it pays to look for memory that is there."""

LASTING = 1 << 27
"""Bytes that stay when no run is left: what some parties have on the way to each other."""

ALIGNMENT = 64
"""Bytes of a cache line, at whose beginning each array begins."""


class MemoryPool:
    """Memory that nobody uses at the moment, by its size; without runs no more than ``lasting``."""

    def __init__(self, lasting: int = LASTING) -> None:
        self._lasting = lasting
        self._lock = threading.Lock()
        self._runs = 0
        self._free: dict[int, _Blocks] = {}

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep memory for arrays to come, until the last run that asked for it is done."""
        with self._lock:
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                if not self._runs:
                    self._keep(self._lasting)

    def let_go(self) -> None:
        """Let all memory go that no array has."""
        with self._lock:
            self._keep(0)

    def _keep(self, most: int) -> None:
        # New queues: what arrays of the old ones give back is let go with them.
        kept = {size: deque(blocks) for size, blocks in self._free.items() if blocks}
        total = sum(size * len(blocks) for size, blocks in kept.items())
        while total > most:
            # The next run misses one block of many less than the only one of its size.
            size = max(kept, key=lambda size: size * len(kept[size]))
            kept[size].pop()
            total -= size
        self._free = kept

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Make an array whose entries are not set."""
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if size < SMALLEST:
            return np.empty(shape, kind)
        if not self._runs:
            return aligned_empty(shape, kind)
        size = -(-size // SMALLEST) * SMALLEST  # arrays of nearly one size serve each other
        free = self._free.setdefault(size, deque())
        try:
            block = free.pop()
        except IndexError:
            block = aligned_empty((size,), np.uint8).data
        # Views of an array hold the array itself, as long as its memory is no array's.
        root = np.frombuffer(block, kind, math.prod(shape))
        weakref.finalize(root, free.append, block).atexit = False
        return root.reshape(shape)


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Make an array that begins a cache line; its entries are not set.

    Loops that read a line at a time take a third longer where each of their lines lies in two.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    values = np.empty(size + ALIGNMENT, np.uint8)
    skip = -values.ctypes.data % ALIGNMENT
    return values[skip : skip + size].view(kind).reshape(shape)


def aligned(values: Array) -> Array:
    """Copy an array to the beginning of a cache line, C-ordered."""
    copied = aligned_empty(values.shape, values.dtype)
    copied[...] = values
    return copied


reused_memory = MemoryPool()
