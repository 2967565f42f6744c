"""The memory of large arrays, used again as long as a run lasts.

A pass makes thousands of arrays of a few megabytes, each gone before long. Memory that the system
hands out costs at the first touch of every page, on virtual machines more than the work on it; what
an allocator gets back goes to the system again. So large arrays come from here: when one of them
and all views of it are gone, its memory serves the next of about its size. After the last run up to
a gigabyte stays for `REST` seconds, since fits often follow each other, and `LASTING` after that.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
_Blocks: TypeAlias = "deque[memoryview]"

SMALLEST = 1 << 18
"""Bytes from which it pays to look for memory that is there."""

LASTING = 1 << 27
"""Bytes that stay when no run is left: what some parties have on the way to each other."""

REST = 10.0
"""Seconds without a run after which no more than that stays: fits often follow each other."""

ALIGNMENT = 64
"""Bytes of a cache line, at whose beginning each array begins."""


class MemoryPool:
    """Memory that nobody uses at the moment, by its size.

    After a run no more than ``soon`` bytes of it stay for the next, and ``rest`` seconds later no
    more than ``lasting``.
    """

    def __init__(self, lasting: int = LASTING, soon: int = 0, rest: float = REST) -> None:
        self._lasting, self._soon, self._rest = lasting, max(soon, lasting), rest
        self._lock = threading.Lock()
        self._runs = 0
        self._resting: threading.Timer | None = None
        self._free: dict[int, _Blocks] = {}

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep memory for arrays to come, until the last run that asked for it is done."""
        with self._lock:
            self._runs += 1
            self._wake()
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                if not self._runs and self._keep(self._soon) > self._lasting:
                    self._begin_rest()

    def let_go(self) -> None:
        """Let all memory go that no array has."""
        with self._lock:
            self._wake()
            self._keep(0)

    def _begin_rest(self) -> None:
        self._resting = threading.Timer(self._rest, self._rested)
        self._resting.daemon = True
        try:
            self._resting.start()
        except RuntimeError:  # no more threads, or the interpreter is about to end
            self._resting = None
            self._keep(self._lasting)

    def _wake(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def _rested(self) -> None:
        with self._lock:
            if self._resting is threading.current_thread():
                self._resting = None
                self._keep(self._lasting)

    def _keep(self, most: int) -> int:
        """Let memory go until no more than ``most`` bytes are left; return how many are."""
        # New queues: what arrays of the old ones give back is let go with them.
        kept = {size: deque(blocks) for size, blocks in self._free.items() if blocks}
        total = sum(size * len(blocks) for size, blocks in kept.items())
        while total > most:
            # The next run misses one block of many less than the only one of its size.
            size = max(kept, key=lambda size: size * len(kept[size]))
            kept[size].pop()
            total -= size
        self._free = kept
        return total

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


_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_to_keep(limits: Iterable[str | Path] = _LIMITS) -> int:
    """Return a gigabyte in bytes, or a sixteenth of a small machine's or container's memory."""
    known = []
    with suppress(AttributeError, ValueError):  # where the system does not tell
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in limits:
        with suppress(OSError, ValueError):  # no such file, or the word for no limit
            known.append(int(Path(path).read_text()))
    return min([1 << 30, *(size // 16 for size in known)]) if known else LASTING


reused_memory = MemoryPool(soon=memory_to_keep())
