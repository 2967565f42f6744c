"""One run of one job at one party, stage by stage: resume, align, prepare, train, publish.

The parties first tell one another how far each has come, so that all take up the work at the same
place. Every stage leaves a checkpoint; a run that is broken off costs no more than its last stage
or block. The party's secret of a job is drawn once, so the same job gives the same model however
often it was interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vertikal.algorithms.alignment import align
from vertikal.data.ids import Ids
from vertikal.data.preparation import learn
from vertikal.data.sources import Source
from vertikal.data.tables import Table
from vertikal.errors import InputError, MeshError
from vertikal.node.checkpoints import Checkpoints
from vertikal.node.differencing import check_difference
from vertikal.node.job import labels_of
from vertikal.node.jobs import Record
from vertikal.node.offers import label_column, open_table, table_digest
from vertikal.node.policy import offered
from vertikal.node.programs import program_named
from vertikal.node.progress import Reporter
from vertikal.node.run_mesh import RunMesh
from vertikal.node.site import Site
from vertikal.party import Labels, Party, digest
from vertikal.privacy.ledger import Ledger
from vertikal.version import __version__

NOTHING, ALIGNED, TRAINED = 0, 1, 2
ROWS = "rows"


@dataclass(frozen=True)
class Bench:
    """What a run works with at one party."""

    site: Site
    record: Record
    mesh: RunMesh
    reporter: Reporter
    checkpoints: Checkpoints
    ledgers: list[Ledger] = field(default_factory=list)
    """What left this party so far, also in a run that is broken off."""

    @property
    def job(self) -> Any:
        return self.record.proposal.job


def run(bench: Bench) -> None:
    """Take part in one run of an approved job; returns when this party's shard is in its store."""
    reached = min(_tell_stage(bench.mesh, _stage(bench)).values())
    if reached < TRAINED:
        _train(bench, reached)
    # Nobody leaves before everybody has its shard: a run that ends here has ended everywhere.
    _tell_stage(bench.mesh, TRAINED)


def _stage(bench: Bench) -> int:
    """How far this party has come with the job."""
    if bench.site.model_of(bench.record.digest) is not None:
        return TRAINED
    return ALIGNED if bench.checkpoints.read(ROWS) is not None else NOTHING


def _tell_stage(mesh: RunMesh, stage: int) -> dict[str, int]:
    """Everybody's stage."""
    for peer in mesh.peers:
        mesh.send(peer, "stage", {"stage": stage})
    stages = {mesh.me: stage}
    for peer in mesh.peers:
        told: Any = mesh.recv(peer, "stage")
        reached = told.get("stage") if isinstance(told, dict) else None
        if reached not in (NOTHING, ALIGNED, TRAINED):
            raise MeshError(f"{mesh.me}: {peer} says that it has come to {told!r:.60}")
        stages[peer] = reached
    return stages


def _train(bench: Bench, reached: int) -> None:
    site, record, job = bench.site, bench.record, bench.job
    source = open_table(site, record.proposal)
    if table_digest(site, record.proposal, source) != record.table:
        raise InputError(
            f"table {job.parties[site.me].table!r} has changed since {site.me} approved; submit "
            "the job again, so that it is approved for what the table holds now"
        )
    ids = source.ids()
    if reached == NOTHING:
        _align(bench, ids)
    rows = np.frombuffer(bench.checkpoints.read(ROWS) or b"", np.int64)
    check_difference(site, record, [ids.values[row] for row in rows])
    offer = offered(site.file, record.proposal)[0]
    with bench.reporter.stage("prepare"):
        preparation, prepared = learn(
            source,
            record.columns,
            rows=rows,
            missing=offer.missing,
            categories=offer.categories,
        )
    labels = _labels(bench, source, rows)
    program = program_named(job.algorithm)
    settings = job.program_settings()
    party = _party(bench, prepared.table, labels, "train", digest(settings))
    shard = program.train(party, settings, site.budget, record.digest)
    facts = {"job": record.digest, "rows": len(rows), "algorithm": job.algorithm}
    site.models.save(record.proposal.name, shard, preparation=preparation, facts=facts)


def _align(bench: Bench, ids: Ids) -> None:
    """The common rows in an order that all share, kept for later runs."""
    site = bench.site
    nobody = Table(site.me, (), np.zeros((0, 0)))
    party = _party(bench, nobody, None, "align", "")
    found = align(party, ids, least=site.policy.least_rows)
    site.note("aligned", bench.record, f"{found.matched} of {found.own} rows")
    bench.checkpoints.write(ROWS, found.rows.tobytes())


def _party(bench: Bench, table: Table, labels: Labels | None, step: str, settings: str) -> Party:
    job = bench.job
    secret = bench.checkpoints.secret(lambda: job.secret(bench.site.me))
    party = Party(
        bench.mesh,
        table,
        label_parties=job.label_parties,
        labels=labels,
        secret=secret,
        job=f"{bench.record.digest}/{bench.record.attempt}/{step}",
        settings=settings,
        version=__version__,
        masking=job.masking,
        shape=job.shape,
        observer=bench.reporter,
        keeper=bench.checkpoints,
    )
    bench.ledgers.append(party.ledger)
    return party


def _labels(bench: Bench, source: Source, rows: Any) -> Labels | None:
    label = bench.job.parties[bench.site.me].label
    if label is None:
        return None
    regression = bool(bench.job.settings.get("regression"))
    column = label_column(source, label, rows)
    return labels_of(bench.site.me, column, regression=regression)
