"""One run of one job at one party, stage by stage: resume, align, prepare, train, publish.

The parties first tell one another how far each has come, so that all take up the work at the same
place. Every stage leaves a checkpoint; a run that is broken off costs no more than its last stage
or block. The party's secret of a job is drawn once, so a job without fresh noise or masks gives the
same model however often it was interrupted. A dealer without data takes no part in the alignment;
the others tell it how many rows they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np

from vertikal.algorithms.alignment.alignment import align
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.ids import Ids, normalise
from vertikal.data.labels import read_targets
from vertikal.data.preparation import Preparation, learn_preparation
from vertikal.data.sources import Source
from vertikal.data.tables import Table
from vertikal.errors import AgreementError, InputError, MeshError
from vertikal.node.approval.differencing import check_difference
from vertikal.node.approval.job_records import Record
from vertikal.node.approval.offers import open_table, table_digest
from vertikal.node.approval.policy import offered
from vertikal.node.links.run_mesh import RunMesh
from vertikal.node.models.job_models import JobModels
from vertikal.node.runs.checkpoints import MARKS, ROWS, Checkpoints
from vertikal.node.runs.progress import ProgressReporter
from vertikal.node.storage.party_home import PartyHome
from vertikal.party.party import Labels, Party, digest
from vertikal.privacy.ledger import Disclosure, Ledger
from vertikal.secure.keys.prg import derive_key
from vertikal.version import __version__

NOTHING, ALIGNED, TRAINED = 0, 1, 2

COMMON = Disclosure(
    "common rows",
    "how many rows all parties with tables have in common",
    "a dealer without data learns this number, and no id",
    masked=False,
)


class Reached(NamedTuple):
    """How far a party has come; trained, also by which run: shards of two runs are no model.

    ``mark`` tells one secret of the party from another, and nothing else about it.
    """

    stage: int
    attempt: int = 0
    mark: str = ""


@dataclass(frozen=True)
class Bench:
    """What a run works with at one party."""

    home: PartyHome
    record: Record
    mesh: RunMesh
    reporter: ProgressReporter
    checkpoints: Checkpoints
    ledgers: list[Ledger] = field(default_factory=list)
    """What left this party so far, also in a run that is broken off."""

    @property
    def job(self) -> Any:
        return self.record.proposal.job


def run(bench: Bench) -> None:
    """Take part in one run of an approved job; returns when this party's shard is in its store."""
    told = _tell_stage(bench.mesh, _stage(bench))
    reached = min(one.stage for one in told.values())
    if reached == TRAINED and len({one.attempt for one in told.values()}) > 1:
        reached = ALIGNED
    if reached < TRAINED:
        if bench.record.done:
            # Its checkpoints are gone, and with them the count of what was opened.
            raise InputError(
                f"{bench.home.me} has finished this job; submit it again to train another model"
            )
        _compare_marks(bench, {name: one.mark for name, one in told.items()})
        _train(bench, reached)
    # Nobody leaves before everybody has its shard: a run that ends here has ended everywhere.
    _tell_stage(bench.mesh, Reached(TRAINED))


def _stage(bench: Bench) -> Reached:
    """How far this party has come with the job."""
    model = JobModels(bench.home).newest_of_job(bench.record.digest)
    mark = derive_key(_secret(bench), "mark").hex()
    if model is not None:
        return Reached(TRAINED, model.facts.get("attempt", 0), mark)
    return Reached(ALIGNED if bench.checkpoints.read(ROWS) is not None else NOTHING, 0, mark)


def _compare_marks(bench: Bench, marks: dict[str, str]) -> None:
    """Forget blocks and answers that were made with another secret of some party.

    A loss of power may take a secret that was just drawn; what others kept does not fit a new one.
    """
    now = msgspec.json.encode(marks, order="sorted")
    if bench.checkpoints.read(MARKS) != now:
        bench.checkpoints.forget_work()
        bench.checkpoints.write(MARKS, now)


def _tell_stage(mesh: RunMesh, mine: Reached) -> dict[str, Reached]:
    """Everybody's stage."""
    for peer in mesh.peers:
        mesh.send(peer, "stage", mine._asdict())
    stages = {mesh.me: mine}
    for peer in mesh.peers:
        told: Any = mesh.recv(peer, "stage")
        try:
            stages[peer] = Reached(**told)
        except TypeError:
            raise _strange(mesh, peer, told) from None
        kinds = tuple(map(type, stages[peer]))
        if kinds != (int, int, str) or stages[peer].stage not in (NOTHING, ALIGNED, TRAINED):
            raise _strange(mesh, peer, told)
    return stages


def _strange(mesh: RunMesh, peer: str, told: Any) -> MeshError:
    return MeshError(f"{mesh.me}: {peer} says that it has come to {told!r:.60}")


def _train(bench: Bench, reached: int) -> None:
    home, record, job = bench.home, bench.record, bench.job
    if job.parties[home.me].table is None:
        _deal(bench, reached)
        return
    source = open_table(home, record.proposal)
    cells: list[Any] = []
    _check_table(bench, source, cells)
    ids = normalise(home.me, cells)
    if reached == NOTHING:
        _align(bench, ids)
    rows = np.frombuffer(bench.checkpoints.read(ROWS) or b"", np.int64)
    check_difference(home, record, [ids.values[row] for row in rows])
    offer = offered(home.file, record.proposal)[0]
    with bench.reporter.stage("prepare"):
        preparation, prepared = learn_preparation(
            source,
            record.columns,
            rows=rows,
            missing=offer.missing,
            categories=offer.categories,
        )
        _check_private(bench, prepared.table)
    labels = _labels(bench, source, rows)
    # Columns and labels were read after the ids, by hours where others were waited for: another
    # table would give these people the rows of others. Nothing of the columns has left so far.
    _check_table(bench, source)
    _learn(bench, prepared.table, labels, preparation)


def _check_table(bench: Bench, source: Source, ids: list[Any] | None = None) -> None:
    """InputError if the table is not the one that was approved; fills ``ids`` on the way."""
    home, record = bench.home, bench.record
    if table_digest(home, record.proposal, source, ids) != record.table:
        raise InputError(
            f"table {bench.job.parties[home.me].table!r} has changed since {home.me} approved; "
            "submit the job again, so that it is approved for what the table holds now"
        )


def _check_private(bench: Bench, table: Table) -> None:
    """With differential privacy, that columns are as they came, whatever other rows hold.

    Which categories there are would be told by the columns that are made of them.
    """
    exposure = algorithm_named(bench.job.algorithm).exposure(bench.job.algorithm_settings())
    if exposure.private and table.columns != tuple(bench.record.columns):
        raise InputError(
            f"columns of {bench.home.me} must be numbers, without missing cells, in a "
            "job with differential privacy"
        )


def _deal(bench: Bench, reached: int) -> None:
    """The part of a dealer without data: no columns, as many rows as the others have in common."""
    if reached == NOTHING:
        _hear_rows(bench)
    rows = int.from_bytes(bench.checkpoints.read(ROWS) or b"", "big")
    me = bench.home.me
    _learn(bench, Table(me, (), np.empty((rows, 0))), None, Preparation(me, "refuse", ()))


def _learn(bench: Bench, table: Table, labels: Labels | None, preparation: Preparation) -> None:
    """Run the job's program; the shard goes into the store, in place of one of a broken-off run."""
    home, record, job = bench.home, bench.record, bench.job
    algorithm, settings = algorithm_named(job.algorithm), job.algorithm_settings()
    party = _party(bench, table, labels, "train", digest(settings))
    shard = algorithm.train(party, settings, home.budget, record.digest)
    facts = {
        "job": record.digest,
        "rows": table.rows,
        "algorithm": job.algorithm,
        "attempt": record.attempt,
    }
    models = JobModels(home)
    earlier = models.of_job(record.digest)
    models.save(record.proposal.name, shard, algorithm, preparation=preparation, facts=facts)
    for one in earlier:
        models.delete(one.name, one.version)


def _align(bench: Bench, ids: Ids) -> None:
    """The common rows in an order that all share, kept for later runs."""
    home = bench.home
    nobody = Table(home.me, (), np.zeros((0, 0)))
    party = _party(bench, nobody, None, "align", "")
    # Before anything is sent: the leader may know the common ids of a run that ends half way.
    words = f"attempt {bench.record.attempt}, {len(ids)} own rows"
    home.note("alignment begins", bench.record.facts, words)
    found = align(party, ids, least=home.policy.least_rows, group=bench.job.table_parties)
    home.note("aligned", bench.record.facts, f"{found.matched} of {found.own} rows")
    known = bench.checkpoints.read(ROWS)
    if known is not None and known != found.rows.tobytes():
        # What earlier runs opened was about those rows; over others it would tell the difference.
        raise InputError(
            "the common rows are not those of an earlier run of this job: a table has changed at "
            "some party; submit the job again"
        )
    bench.checkpoints.write(ROWS, found.rows.tobytes())
    if bench.job.bare_dealer is not None:
        party.tell(bench.job.bare_dealer, {"rows": found.matched}, COMMON)


def _hear_rows(bench: Bench) -> None:
    """At a dealer without data: how many rows the others have in common, by all of them."""
    me = bench.home.me
    party = _party(bench, Table(me, (), np.zeros((0, 0))), None, "align", "")
    said = {}
    # One wait for all of the others' waits; whoever is lost meanwhile still ends it.
    with party.clock.stage("alignment of the others"), party.waiting(10 * party.deadline):
        for name in bench.job.table_parties:
            told: Any = party.hear(name, COMMON)
            said[name] = told.get("rows") if isinstance(told, dict) else None
    rows = said[party.leader]
    if type(rows) is not int or rows < 1 or set(said.values()) != {rows}:
        words = ", ".join(f"{name} says {number!r:.20}" for name, number in said.items())
        raise AgreementError(
            f"{me}: the others must agree on the number of their common rows: {words}"
        )
    bench.home.note("aligned", bench.record.facts, f"{rows} rows of the others")
    bench.checkpoints.write(ROWS, rows.to_bytes(8, "big"))


def _party(bench: Bench, table: Table, labels: Labels | None, step: str, settings: str) -> Party:
    job = bench.job
    party = Party(
        bench.mesh,
        table,
        label_parties=job.label_parties,
        labels=labels,
        secret=_secret(bench),
        job=f"{bench.record.digest}/{bench.record.attempt}/{step}",
        settings_digest=settings,
        version=__version__,
        masking=job.masking,
        shape=job.shape,
        observer=bench.reporter,
        checkpoints=bench.checkpoints,
    )
    bench.ledgers.append(party.ledger)
    return party


def _secret(bench: Bench) -> bytes:
    """This party's 32 bytes of the job, the same in all its runs."""
    return bench.checkpoints.secret(lambda: bench.job.secret(bench.home.me))


def _labels(bench: Bench, source: Source, rows: Any) -> Labels | None:
    label = bench.job.parties[bench.home.me].label
    if label is None:
        return None
    regression = bench.job.algorithm_settings().regression
    targets = read_targets(source, label, rows, regression=regression)
    return Labels(targets, np.ones(len(targets)))
