"""Tasks side by side on the cores of this machine, in threads that are kept for it.

In `side_by_side` the thread that asks works too, so that no task waits for a free one: many small
products follow each other, and starting threads for each would take as long as some of them.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class PartiesAtWork:
    """Counts the parties that work in this process at the same time, each in its own thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @contextmanager
    def __call__(self, count: int) -> Iterator[None]:
        with self._lock:
            self._count += count
        try:
            yield
        finally:
            with self._lock:
                self._count -= count

    @property
    def cores_of_each(self) -> int:
        """Cores that each of them may use while the others work too."""
        return max(1, cores() // max(1, self._count))


parties_at_work = PartiesAtWork()


def side_by_side(work: Callable[[Task], None], tasks: Sequence[Task], threads: int) -> None:
    """Run ``work`` for each task in up to ``threads`` threads; the first error of any is raised."""
    if threads == 1 or len(tasks) < 2:
        for task in tasks:
            work(task)
        return
    left = deque(tasks)

    def take_turns() -> None:
        try:
            while left:
                try:
                    task = left.popleft()
                except IndexError:  # another thread took the last one
                    return
                work(task)
        except BaseException:
            left.clear()
            raise

    others = [_threads().submit(take_turns) for _ in range(min(threads, len(tasks)) - 1)]
    try:
        take_turns()
    finally:
        # One that has not begun has nothing left to do; the others end with the task at hand.
        begun = [other for other in others if not other.cancel()]
        errors = [other.exception() for other in begun]
    for error in errors:
        if error is not None:
            raise error


def in_order(tasks: Iterable[Callable[[], Result]], at_a_time: int) -> Iterator[Result]:
    """Run tasks in threads of their own, and yield their results in order.

    A task begins when at most ``at_a_time`` − 1 of those before it are not done. They may wait for
    each other's counterparts elsewhere: none waits for a thread that another one has.
    """
    if at_a_time == 1:
        for task in tasks:
            yield task()
        return
    pool = ThreadPoolExecutor(at_a_time, "in order")
    begun: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            begun.append(pool.submit(task))
            if len(begun) == at_a_time:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        # Not waited for: after an error the others end with their own waits.
        pool.shutdown(wait=False, cancel_futures=True)


def in_background(work: Callable[[], Result]) -> Callable[[], Result]:
    """Begin some work as soon as a core is free for it; what is returned waits for its result.

    Who waits does not work meanwhile: more threads at work than cores would take cores and Python's
    lock from each other. So this work must not wait for work of the same kind.
    """
    return _threads().submit(work).result


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), "side by side")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # threads stay with the parent
