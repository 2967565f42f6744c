"""All parties of a run in this process: one thread for each, all on one local mesh.

When a party fails, its mesh tells the others, so that every wait for a message ends. A party that
hangs in work of its own cannot be stopped; its thread is a daemon and is left behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from vertikal.errors import MeshError, VertikalError
from vertikal.mesh.interface import Mesh

Result = TypeVar("Result")

GRACE = 1.0
"""Seconds that the other parties have to end after one has failed, or after an interruption."""


@dataclass(frozen=True)
class Ended(Generic[Result]):
    """The results of the parties that finished, and the errors of those that were dispensable."""

    results: Mapping[str, Result]
    errors: Mapping[str, BaseException]


def run_in_threads(
    meshes: Mapping[str, Mesh],
    work: Callable[[Mesh], Result],
    dispensable: tuple[str, ...] = (),
) -> Ended[Result]:
    """Call ``work`` with each party's mesh in a thread of its own, and wait for all of them.

    If a party fails, its error is raised here: the first error that is not only the echo of
    another party's failure. The failure of a ``dispensable`` party is returned instead, as long as
    another dispensable one is left.
    """
    results: dict[str, Result] = {}
    errors: dict[str, BaseException] = {}
    ended: SimpleQueue[str] = SimpleQueue()

    def run(name: str, mesh: Mesh) -> None:
        try:
            results[name] = work(mesh)
            mesh.close()
        except BaseException as error:
            if not isinstance(error, VertikalError):
                error.add_note(f"raised at party {name!r}")
            errors[name] = error
            mesh.fail(f"{type(error).__name__}: {error}")
        finally:
            ended.put(name)

    threads = [
        threading.Thread(target=run, args=item, name=item[0], daemon=True)
        for item in meshes.items()
    ]
    for thread in threads:
        thread.start()
    try:
        _wait(set(meshes), ended, lambda: is_fatal(errors, dispensable))
    except BaseException:
        for mesh in meshes.values():
            mesh.fail("interrupted")
        until = time.monotonic() + GRACE
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        raise
    if is_fatal(errors, dispensable):
        raise _cause(errors)
    return Ended(results, errors)


def is_fatal(failed: Collection[str], dispensable: tuple[str, ...]) -> bool:
    """Check whether the other parties cannot finish without those that failed."""
    names = set(failed)
    return bool(names - set(dispensable)) or bool(names and names >= set(dispensable))


def _wait(running: set[str], ended: SimpleQueue[str], fatal: Callable[[], bool]) -> None:
    """Return when all parties have ended, or `GRACE` seconds after a fatal failure."""
    until = None
    while running:
        left = None if until is None else max(0.0, until - time.monotonic())
        try:
            running.discard(ended.get(timeout=left))
        except Empty:
            return
        if until is None and fatal():
            until = time.monotonic() + GRACE


def _cause(errors: Mapping[str, BaseException]) -> BaseException:
    """The error that came first; a MeshError may only say that another party has stopped."""
    first = next(iter(errors.values()))
    return next((error for error in errors.values() if not isinstance(error, MeshError)), first)
