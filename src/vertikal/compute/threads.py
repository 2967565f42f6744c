"""Blocks of work side by side on the cores of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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
