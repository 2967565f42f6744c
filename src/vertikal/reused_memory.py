"""The memory of large arrays, used again as long as a run lasts.

A pass makes thousands of arrays of a few megabytes, each gone before long. Memory that the system
hands out costs at the first touch of every page, on virtual machines more than the work on it; what
an allocator gets back goes to the system again. So large arrays come from here: when one of
them and all views of it are gone, its memory serves the next of its size. After the last run all of
it is let go.
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

ALIGNMENT = 64
"""Bytes of a cache line, at whose beginning each array begins."""


class MemoryPool:
    """Memory that nobody uses at the moment, by its size; empty unless a run lasts."""

    def __init__(self) -> None:
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
                    self._free = {}

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Make an array whose entries are not set."""
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if size < SMALLEST or not self._runs:
            return np.empty(shape, kind)
        free = self._free.setdefault(size, deque())
        try:
            block = free.pop()
        except IndexError:
            block = _aligned(size)
        # Views of an array hold the array itself, as long as its memory is no array's.
        root = np.frombuffer(block, kind)
        weakref.finalize(root, free.append, block).atexit = False
        return root.reshape(shape)


def _aligned(size: int) -> memoryview:
    values = np.empty(size + ALIGNMENT, np.uint8)
    skip = -values.ctypes.data % ALIGNMENT
    return values[skip : skip + size].data


reused_memory = MemoryPool()
