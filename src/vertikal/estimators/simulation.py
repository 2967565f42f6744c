"""Running a program for all parties at once: one thread and one mesh end each, one process."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from vertikal.compute.threads import one_blas_thread
from vertikal.data.tables import Table
from vertikal.errors import MeshError, VertikalError
from vertikal.estimators.report import Report
from vertikal.mesh import local_meshes
from vertikal.mesh.interface import Mesh
from vertikal.party.clock import Observer
from vertikal.party.party import Labels, Party
from vertikal.privacy.ledger import Ledger
from vertikal.version import __version__

Result = TypeVar("Result")
Wrap = Callable[[Mesh], Mesh]

GRACE = 1.0
"""Seconds that the others have to end after one party has failed."""


@dataclass(frozen=True)
class Federation:
    """Who takes part in a simulated run, and with what."""

    tables: Mapping[str, Table]
    label_parties: tuple[str, ...]
    labels: Labels | None
    secrets: Mapping[str, bytes]
    settings: str
    masking: str | None
    timeout: float
    observer: Observer | None = None
    wrap: Wrap = lambda mesh: mesh
    """Lets a test put a recording mesh in between."""
    dispensable: tuple[str, ...] = ()
    """Parties without which the others may finish, as long as one of these is left."""


@dataclass(frozen=True)
class Outcome:
    """What a run gave, by party, and what it cost."""

    results: Mapping[str, Any]
    ledger: Ledger
    report: Report
    vanished: Mapping[str, str] = field(default_factory=dict)
    """Dispensable parties that failed, and why; their result is what they had kept before."""


def simulate(federation: Federation, program: Callable[[Party], Any]) -> Outcome:
    """Run ``program`` for every party; raise the first party's error if one fails."""
    names = tuple(federation.tables)
    meshes = {
        name: federation.wrap(mesh)
        for name, mesh in local_meshes(names, federation.timeout).items()
    }
    job = secrets.token_hex(8)
    parties: dict[str, Party] = {}
    results: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    errors: dict[str, BaseException] = {}
    ended: SimpleQueue[str] = SimpleQueue()

    def run(name: str) -> None:
        try:
            party = Party(
                meshes[name],
                federation.tables[name],
                label_parties=federation.label_parties,
                labels=federation.labels if name in federation.label_parties else None,
                secret=federation.secrets[name],
                job=job,
                settings=federation.settings,
                version=__version__,
                masking=federation.masking,
                observer=federation.observer,
                keep=lambda shard: kept.update({name: shard}),
            )
            parties[name] = party
            results[name] = program(party)
            meshes[name].close()
        except BaseException as error:
            if not isinstance(error, VertikalError):
                error.add_note(f"raised at party {name!r}")
            errors[name] = error
            meshes[name].fail(f"{type(error).__name__}: {error}")
        finally:
            ended.put(name)

    began = time.perf_counter()
    threads = [threading.Thread(target=run, args=(name,), name=name, daemon=True) for name in names]
    with one_blas_thread():
        for thread in threads:
            thread.start()
        try:
            _await(names, ended, errors, federation.dispensable)
        except BaseException:
            for mesh in meshes.values():
                mesh.fail("interrupted")
            for thread in threads:
                thread.join(GRACE)
            raise
    if _fatal(errors, federation.dispensable):
        raise _cause(errors)
    wall = time.perf_counter() - began
    return Outcome(
        {name: results[name] if name in results else kept[name] for name in names},
        Ledger.joined(party.ledger for party in parties.values()),
        Report.of({name: parties[name].clock.stages for name in names}, wall),
        {name: f"{type(error).__name__}: {error}" for name, error in errors.items()},
    )


def _fatal(errors: Mapping[str, BaseException], dispensable: tuple[str, ...]) -> bool:
    """Whether somebody failed without whom the others cannot finish."""
    return bool(set(errors) - set(dispensable)) or bool(errors and set(errors) >= set(dispensable))


def _await(
    names: tuple[str, ...],
    ended: SimpleQueue[str],
    errors: Mapping[str, BaseException],
    dispensable: tuple[str, ...],
) -> None:
    """Until all parties have ended; once one has failed, the others get a moment and no more.

    A failure ends every wait for a message, so only a party that hangs in its own work is left.
    Its thread is a daemon, and the error of whoever waited names it.
    """
    running, until = set(names), None
    while running:
        left = None if until is None else max(0.0, until - time.monotonic())
        try:
            running.discard(ended.get(timeout=left))
        except Empty:
            return
        if _fatal(errors, dispensable) and until is None:
            until = time.monotonic() + GRACE


def _cause(errors: Mapping[str, BaseException]) -> BaseException:
    """The error that began it: the others only say that somebody stopped."""
    first = next(iter(errors.values()))
    return next((error for error in errors.values() if not isinstance(error, MeshError)), first)
