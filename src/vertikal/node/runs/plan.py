"""The plan of a job: its cost before anything runs, from a short probe with invented columns.

The probe goes through the stages of a run, all parties in this process: alignment, then all that a
run does with its rows, search and evaluation included. It is done on two numbers of rows, and the
line through both is drawn to all rows; where a formula says that the cost grows faster than the
rows, what it has above its own line is added. Larger probes follow as long as they are quick, so
that the line is not drawn far, and until both have several blocks of rows: from the second block on
every product starts threads, a constant that a line from a single block would take for a slope.

Bytes and frames are counted exactly. Seconds are those of this machine, as busy as it is now, doing
the work of all parties: where each has a machine of its own, a job with much work takes less. Links
are measured by a few messages to each party that is there. Of tables only the submitter's own is
read.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vertikal.algorithms.alignment.alignment import align
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.compute.threads import one_blas_thread
from vertikal.data.file_formats import arrow
from vertikal.data.sources import open_source
from vertikal.data.tables import Table
from vertikal.mesh.interface import Mesh
from vertikal.mesh.local import local_meshes
from vertikal.mesh.party_threads import run_in_threads
from vertikal.node.config.job_file import Job
from vertikal.node.runs.party_run import PartyRun, run_party
from vertikal.node.runs.progress import ProgressReporter
from vertikal.node.runs.workplaces import UsedTable, Workplace
from vertikal.party.party import Party
from vertikal.ring.products import HEIGHT
from vertikal.secure.keys.prg import fresh_key
from vertikal.side_by_side import cores
from vertikal.version import __version__

WARM = 50
"""Rows of a run before the probes, in which libraries are loaded and loops compiled."""
ENOUGH = 1.5
"""Seconds of a probe after which no larger one follows."""
LONG = 3.0
"""Seconds of a probe that is not repeated: a moment of other work hardly shows in it."""
STEP = 3
"""Rows of a probe, in rows of the one before."""
SPEEDS = {"10 Mb/s": 10e6 / 8, "100 Mb/s": 100e6 / 8, "1 Gb/s": 1e9 / 8}
GUESS = 10
"""Columns of a party that the job does not list."""
WAITS = 0.4
"""Seconds that services wait for beats: proposal, approvals, begin and end, 0.1 s for each."""
APPROVALS = 0.25
"""Seconds of the work before a run on an idle machine: approvals by rule, threads."""
READINGS = 4
"""Times that a service reads its table: to approve, align, prepare, and compare it once more."""
ALIGN, LEARN = "align", "train and measure"
SPIN = 1 << 20
"""Bytes that are hashed at once to see how many cores are free."""
SPINS = 200
ALIGNMENT_ROUNDS = 8
"""Messages of an alignment that wait for one another."""


@dataclass(frozen=True)
class Use:
    """Bytes and frames of one party in one probe."""

    bytes_sent: int
    frames: int


@dataclass(frozen=True)
class ProbeResult:
    """Seconds of one probe by stage, and what each party sent."""

    rows: int
    stages: dict[str, float]
    parties: dict[str, Use]

    @property
    def seconds(self) -> float:
        return sum(self.stages.values())

    def faster(self, other: ProbeResult) -> ProbeResult:
        """Take the faster time of each stage, of two probes of the same rows."""
        stages = {name: min(spent, other.stages[name]) for name, spent in self.stages.items()}
        return replace(self, stages=stages)


@dataclass(frozen=True)
class MeasuredLink:
    """A link to another party as measured: seconds there and back, and its speed."""

    seconds: float
    bytes_a_second: float


@dataclass(frozen=True)
class PartyPlan:
    """Cost of a job at one party."""

    bytes_sent: int
    frames: int
    memory: int


@dataclass(frozen=True)
class Plan:
    """Cost of a job by party, seconds of work by stage, and its minutes by bandwidth."""

    rows: int
    stages: dict[str, float]
    """Seconds on this machine: to begin, read, align, train and measure."""
    parties: dict[str, PartyPlan]
    minutes: dict[str, float]
    links: dict[str, MeasuredLink]


def plan(job: Job, rows: int, links: Mapping[str, MeasuredLink], reading: float = 0.0) -> Plan:
    """Plan a job over ``rows`` common rows, of a table that takes ``reading`` seconds to read."""
    algorithm, settings = algorithm_named(job.algorithm), job.algorithm_settings()
    small, large = _probes(job, rows)

    def extended(first: float, second: float) -> float:
        """Extend the line through both probes to all rows, never below the small one."""
        slope = max(0.0, (second - first) / (large.rows - small.rows))
        return max(float(first), first + slope * (rows - small.rows))

    cost = algorithm.cost(settings, rows, GUESS)
    before, after = (algorithm.cost(settings, one.rows, GUESS) for one in (small, large))

    def above(first: float, second: float, whole: float) -> float:
        """Compute how far a formula is above the line through its values at both probes."""
        faster = algorithm.grows_faster(settings)
        return max(0.0, whole - extended(first, second)) if faster else 0.0

    busy = cores() / free_cores(len(job.table_parties))
    stages = {"begin": WAITS + APPROVALS * busy, "read": READINGS * reading}
    stages |= {name: extended(small.stages[name], large.stages[name]) for name in small.stages}
    products = before.multiplications, after.multiplications
    pace = max(0.0, large.stages[LEARN] - small.stages[LEARN]) / max(1.0, products[1] - products[0])
    stages[LEARN] += pace * above(*products, cost.multiplications)
    parties = {}
    for name in job.names:
        sent = above(*(one.bytes_sent.get(name, 0) for one in (before, after, cost)))
        first, second = small.parties[name], large.parties[name]
        parties[name] = PartyPlan(
            int(extended(first.bytes_sent, second.bytes_sent) + sent),
            int(extended(first.frames, second.frames)),
            cost.memory[name],
        )
    speeds = dict(SPEEDS)
    if links:
        speeds = {"as measured": min(link.bytes_a_second for link in links.values()), **speeds}
    rounds = ALIGNMENT_ROUNDS + cost.rounds * (1 + job.held_out_predictions)
    waiting = rounds * max((link.seconds for link in links.values()), default=0.0)
    most = max(one.bytes_sent for one in parties.values())
    minutes = {
        title: (sum(stages.values()) + waiting + most / speed) / 60
        for title, speed in speeds.items()
    }
    return Plan(rows, stages, parties, minutes, dict(links))


def _probes(job: Job, rows: int) -> tuple[ProbeResult, ProbeResult]:
    """Run two probes of different sizes, the larger one long enough to be measured."""
    with one_blas_thread():
        probe(job, WARM)
        fewer, more = algorithm_named(job.algorithm).probe_rows
        small, large = probe(job, fewer), probe(job, more)
        while next_rows := larger_probe(small.rows, large.rows, large.seconds, rows):
            small, large = large, probe(job, next_rows)
        # Whatever else the machine does only adds: of two measurements the smaller is nearer.
        small = small.faster(probe(job, small.rows))
        return small, large if large.seconds > LONG else large.faster(probe(job, large.rows))


def larger_probe(small: int, large: int, seconds: float, rows: int) -> int | None:
    """Return the rows of the next probe after two of so many, or None if they will do.

    ``seconds`` are those of the large one. For 30,000 rows, after 900 and 2,700: 8,100, since 900
    rows are a single block. After 2,700 and 8,100: 24,300 if 8,100 were quick, else None.
    """
    if large >= rows:
        return None
    if small <= HEIGHT < rows:
        return min(large * STEP, rows)
    return large * STEP if seconds < ENOUGH and large * STEP <= rows else None


class _Place(Workplace):
    """The workplace of a party in a probe: a table that is made up, and nothing that is kept."""

    models = None

    def __init__(self, me: str, job: Job, rows: int) -> None:
        super().__init__(me, job, run="probe", model="probe", folder=Path(), facts={"job": "probe"})
        self._rows = rows

    @cached_property
    def table(self) -> UsedTable | None:
        part = self.job.parties[self.me]
        if part.table is None:
            return None
        columns = tuple(part.columns or (f"c{i}" for i in range(GUESS)))
        own = np.random.default_rng(self.job.names.index(self.me))
        cells: dict[str, Any] = {name: own.normal(size=self._rows) for name in columns}
        cells |= _labels(self.job, self.me, self._rows)
        split = self.job.split_column(self.me)
        if split is not None:
            # So many groups, or moments, that any share of the rows can be held out.
            cells.setdefault(split, np.arange(self._rows) // 4)
        return UsedTable(open_source(self.me, arrow().table(cells)), columns)


def _labels(job: Job, me: str, rows: int) -> dict[str, Any]:
    """Make up labels, the same at all label parties, and weights."""
    part = job.parties[me]
    if part.label is None:
        return {}
    draw = np.random.default_rng(len(job.names))
    classes = job.classes or ("0", str(part.positive or 1))
    regression = job.algorithm_settings().regression
    labels = draw.normal(size=rows) if regression else np.resize(classes, rows)
    found = {part.label: labels if regression else draw.permutation(labels)}
    return found | ({} if part.weight is None else {part.weight: np.ones(rows)})


class _Watch:
    """Seconds of the stages of a probe."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self.work: dict[str, float] = {}
        """Seconds of work of all threads of this process, by stage."""
        self._last = time.perf_counter(), time.process_time()

    def end(self, stage: str) -> None:
        now = time.perf_counter(), time.process_time()
        self.stages[stage] = now[0] - self._last[0]
        self.work[stage] = now[1] - self._last[1]
        self._last = now


def probe(job: Job, rows: int) -> ProbeResult:
    """Run the job over invented columns, as its run would, and see what it takes."""
    if job.bare_dealer is not None:
        dealer = msgspec.structs.replace(job.parties[job.bare_dealer], rows=rows)
        job = msgspec.structs.replace(job, parties={**job.parties, job.bare_dealer: dealer})
    meshes = local_meshes(job.names, 120.0)
    watches = {name: _Watch() for name in job.names}
    ended = run_in_threads(meshes, lambda mesh: _take_part(job, mesh, rows, watches[mesh.me]))
    # Whoever is last ends a stage.
    names = watches[job.leader].stages
    stages = {name: max(one.stages.get(name, 0.0) for one in watches.values()) for name in names}
    # Threads of one process wait for one another between short calls, processes do not. All parties
    # multiply points at the same time, on all cores.
    work = max(one.work.get(ALIGN, 0.0) for one in watches.values())
    stages[ALIGN] = min(stages[ALIGN], work / free_cores(len(job.table_parties)))
    return ProbeResult(rows, stages, dict(ended.results))


def free_cores(parties: int) -> float:
    """Measure how many cores the alignment of so many parties gets at present, by a short load."""
    load = bytes(SPIN)
    began, worked = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(parties * cores()) as pool:
        # Hashing lets go of Python's lock.
        list(pool.map(lambda _: hashlib.sha256(load), range(SPINS)))
    took = time.perf_counter() - began
    return min(float(cores()), max(0.1, (time.process_time() - worked) / took))


def _take_part(job: Job, mesh: Mesh, rows: int, watch: _Watch) -> Use:
    me = mesh.me
    nobody = Party(
        mesh,
        Table(me, (), np.zeros((0, 0))),
        label_parties=job.label_parties,
        labels=None,
        secret=fresh_key(),
        job="probe/align",
        settings_digest="",
        version=__version__,
    )
    if job.parties[me].table is not None:
        align(nobody, [str(number) for number in range(rows)], group=job.table_parties)
    steps = [nobody]
    watch.end(ALIGN)
    reporter = ProgressReporter(mesh, lambda progress: None, every=60.0)
    run_party(PartyRun(_Place(me, job, rows), mesh, reporter, steps=steps))
    watch.end(LEARN)
    sent = [entry for step in steps for entry in step.ledger.entries()]
    return Use(sum(entry.bytes for entry in sent), sum(entry.frames for entry in sent))
