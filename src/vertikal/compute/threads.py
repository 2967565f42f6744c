"""Threads: blocks of work side by side on the cores, and one BLAS thread in each.

Parties, or blocks of rows, are what runs in parallel. The last bits of a product depend on how many
BLAS threads shared it, so the limit to one also makes a model the same on every machine; it must
not end while another run of this process still works.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(work: Callable[[Task], None], tasks: Sequence[Task], threads: int) -> None:
    """Run ``work`` for each task; the first error of any is raised."""
    if threads == 1 or len(tasks) < 2:
        for task in tasks:
            work(task)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, tasks):
            pass


class SharedLimit:
    """A limit that holds until the last thread that asked for it is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit = _controller().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.restore_original_limits()
                # threadpoolctl lets no thread change a limit but the one that set it last. Entering
                # and leaving an empty limit frees it, so that any thread may lift this one.
                with _controller().limit():
                    pass


one_blas_thread = SharedLimit()


@cache
def _controller() -> ThreadpoolController:
    """Controller of the BLAS libraries, made once: finding them takes a while.

    They must be loaded to be found.
    """
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()
