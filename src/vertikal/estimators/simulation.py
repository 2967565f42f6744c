"""A simulated federation: the same program for all parties at once, in threads of this process."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vertikal.compute.device.choice import DeviceName
from vertikal.compute.place import Place
from vertikal.compute.threads import one_blas_thread
from vertikal.compute.workers.cluster import Workers
from vertikal.compute.workers.spread_place import place_of
from vertikal.data.tables import Table
from vertikal.estimators.reports.report import Report
from vertikal.mesh import local_meshes
from vertikal.mesh.interface import Mesh
from vertikal.mesh.party_threads import run_in_threads
from vertikal.party.clock import Observer
from vertikal.party.party import Labels, Party
from vertikal.privacy.ledger import Ledger
from vertikal.reused_memory import reused_memory
from vertikal.side_by_side import parties_at_work
from vertikal.version import __version__

Wrap = Callable[[Mesh], Mesh]


@dataclass(frozen=True)
class Federation:
    """The parties of a simulated run, and what each brings."""

    tables: Mapping[str, Table]
    label_parties: tuple[str, ...]
    labels: Labels | Mapping[str, Labels] | None
    """Labels of all label parties, or of each by its name."""
    secrets: Mapping[str, bytes]
    settings: str
    masking: str | None
    timeout: float
    observer: Observer | None = None
    wrap: Wrap = lambda mesh: mesh
    """Lets a test put a recording mesh in between."""
    dispensable: tuple[str, ...] = ()
    """Parties without which the others may finish, as long as one of these is left."""
    device: DeviceName = "cpu"
    """The device that all parties share."""
    workers: Workers | None = None
    """Workers of each party; None for threads of this process alone."""

    def labels_of(self, name: str) -> Labels | None:
        """Return the labels that this party holds, if any."""
        if name not in self.label_parties or self.labels is None:
            return None
        return self.labels if isinstance(self.labels, Labels) else self.labels[name]


@dataclass(frozen=True)
class Outcome:
    """The results of a run, by party, and what it cost."""

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
    kept: dict[str, Any] = {}

    def work(mesh: Mesh) -> Any:
        with place_of(federation.workers, mesh.me, federation.device) as place:
            return at_party(mesh, place)

    def at_party(mesh: Mesh, place: Place) -> Any:
        name = mesh.me
        parties[name] = Party(
            mesh,
            federation.tables[name],
            label_parties=federation.label_parties,
            labels=federation.labels_of(name),
            secret=federation.secrets[name],
            job=job,
            settings_digest=federation.settings,
            version=__version__,
            masking=federation.masking,
            observer=federation.observer,
            save_shard=lambda shard: kept.update({name: shard}),
            place=place,
        )
        parties[name].table = place.table(parties[name].table)
        return program(parties[name])

    began = time.perf_counter()
    with one_blas_thread(), reused_memory(), parties_at_work(len(meshes)):
        ended = run_in_threads(meshes, work, federation.dispensable)
    wall = time.perf_counter() - began
    results = {**kept, **ended.results}
    return Outcome(
        {name: results[name] for name in names},
        Ledger.joined(party.ledger for party in parties.values()),
        Report.of({name: parties[name].clock.stages for name in names}, wall),
        {name: f"{type(error).__name__}: {error}" for name, error in ended.errors.items()},
    )
