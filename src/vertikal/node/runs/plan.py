"""The plan of a job: its cost before anything runs, from a short probe with invented columns.

The probe runs the job's own program, all parties in this process, on two small numbers of rows, and
draws the line through both: bytes and frames are counted exactly, seconds are this machine's. Links
are measured by a few messages to each party that is there. Of tables only the submitter's own is
read, to count its rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vertikal.algorithms.alignment.alignment import align
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.tables import Table
from vertikal.mesh.interface import Mesh
from vertikal.mesh.local import local_meshes
from vertikal.mesh.party_threads import run_in_threads
from vertikal.node.config.job_file import Job
from vertikal.party.party import Labels, Party, digest
from vertikal.secure.keys.prg import fresh_key
from vertikal.version import __version__

WARM = 50
"""Rows of a run before the probes, in which libraries are loaded and loops compiled."""
SPEEDS = {"10 Mb/s": 10e6 / 8, "100 Mb/s": 100e6 / 8, "1 Gb/s": 1e9 / 8}
GUESS = 10
"""Columns of a party that the job does not list."""


@dataclass(frozen=True)
class Use:
    """Seconds, bytes and frames of one party in one probe."""

    seconds: float
    bytes_sent: int
    frames: int


@dataclass(frozen=True)
class Link:
    """A link to another party as measured: seconds there and back, and its speed."""

    seconds: float
    bytes_a_second: float


@dataclass(frozen=True)
class PartyPlan:
    """Cost of a job at one party."""

    work: float  # seconds
    bytes_sent: int
    frames: int
    memory: int


@dataclass(frozen=True)
class Plan:
    """Cost of a job by party, and its minutes by bandwidth."""

    rows: int
    parties: dict[str, PartyPlan]
    minutes: dict[str, float]
    links: dict[str, Link]


def plan(job: Job, rows: int, links: Mapping[str, Link]) -> Plan:
    """Plan a job over ``rows`` common rows."""
    _probe(job, WARM)
    algorithm, settings = algorithm_named(job.algorithm), job.algorithm_settings()
    fewer, more = algorithm.probe_rows
    small, large = _probe(job, fewer), _probe(job, more)
    memory = algorithm.cost(settings, rows, GUESS).memory

    def extended(first: float, second: float) -> float:
        """Extend the line through both probes to all rows, never below the small one."""
        slope = max(0.0, (second - first) / (more - fewer))
        return max(float(first), first + slope * (rows - fewer))

    parties = {}
    for name in job.names:
        parties[name] = PartyPlan(
            extended(small[name].seconds, large[name].seconds),
            int(extended(small[name].bytes_sent, large[name].bytes_sent)),
            int(extended(small[name].frames, large[name].frames)),
            memory[name],
        )
    delay = max((link.seconds for link in links.values()), default=0.0)
    speeds = dict(SPEEDS)
    if links:
        speeds = {"as measured": min(link.bytes_a_second for link in links.values()), **speeds}
    minutes = {title: _minutes(parties, speed, delay) for title, speed in speeds.items()}
    return Plan(rows, parties, minutes, dict(links))


def _minutes(parties: Mapping[str, PartyPlan], speed: float, delay: float) -> float:
    """Add up the slowest party's work, its bytes at this speed, and its frames one by one."""
    slowest = max(one.work + one.bytes_sent / speed for one in parties.values())
    return (slowest + delay * max(one.frames for one in parties.values())) / 60


def _probe(job: Job, rows: int) -> dict[str, Use]:
    """Run the job over invented columns; returns what each party used."""
    meshes = local_meshes(job.names, 120.0)
    return dict(run_in_threads(meshes, lambda mesh: _take_part(job, mesh, rows)).results)


def _take_part(job: Job, mesh: Mesh, rows: int) -> Use:
    began = time.thread_time()
    seed = list(job.names).index(mesh.me)
    part = job.parties[mesh.me]
    columns = part.columns or tuple(f"c{i}" for i in range(GUESS if part.table else 0))
    values = np.random.default_rng(seed).normal(size=(rows, len(columns)))
    options: dict[str, Any] = {
        "label_parties": job.label_parties,
        "secret": fresh_key(),
        "job": "probe",
        "version": __version__,
        "masking": job.masking,
        "shape": job.shape,
    }
    nobody = Table(mesh.me, (), np.zeros((0, 0)))
    aligned = Party(mesh, nobody, labels=None, settings_digest="", **options)
    if part.table is not None:
        align(aligned, [str(number) for number in range(rows)], group=job.table_parties)
    labels = None
    if part.label is not None:
        targets = np.where(np.random.default_rng(99).normal(size=(rows, 1)) > 0, 1.0, -1.0)
        labels = Labels(targets, np.ones(rows))
    settings = job.algorithm_settings()
    party = Party(
        mesh,
        Table(mesh.me, tuple(columns), values),
        labels=labels,
        settings_digest=digest(settings),
        **options,
    )
    algorithm_named(job.algorithm).train(party, settings)
    sent = [*aligned.ledger.entries(), *party.ledger.entries()]
    return Use(
        time.thread_time() - began,
        sum(entry.bytes for entry in sent),
        sum(entry.frames for entry in sent),
    )
