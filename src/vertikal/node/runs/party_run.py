"""One run of one job at one party, stage by stage.

The stages are: resume, align, prepare, search, train, evaluate, publish, predict.

Between services the parties first tell one another how far each has come, so that all take up the
work at the same place. Every stage leaves a checkpoint; a run that is broken off costs no more than
its last stage or block. The party's secret of a job is drawn once, so a job without fresh noise or
masks gives the same model however often it was interrupted. A dealer without data takes no part in
the alignment; the others tell it how many rows they have in common.

With files in a common order (`vertikal run`) there is nothing to align and nothing to resume. What
tells the two apart is the `Workplace`, not the code here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Fit
from vertikal.algorithms.alignment.alignment import align
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.compute.threads import one_blas_thread
from vertikal.data.drift.profile import Profile, learn_profile
from vertikal.data.ids import Ids, normalise
from vertikal.data.labels import LabelledRows, read_labels
from vertikal.data.preparation import Preparation, learn_preparation
from vertikal.data.sources import Source
from vertikal.data.tables import Table
from vertikal.errors import (
    AgreementError,
    DiskFull,
    InputError,
    MeshError,
    PeerVisibleError,
    VertikalError,
)
from vertikal.files import disk_error, is_full
from vertikal.mesh.interface import Mesh
from vertikal.mesh.packets.packet_mesh import PacketMesh
from vertikal.node.config.job_file import Job, settings_line
from vertikal.node.models.evaluation import Evaluation
from vertikal.node.models.score_reading import ScoreReading
from vertikal.node.models.search_table import SearchTable
from vertikal.node.models.succession import KEPT_BACK, reason_to_keep_back
from vertikal.node.models.training_record import TrainingRecord
from vertikal.node.peer_message import peer_message
from vertikal.node.runs.checkpoint_folder import MARKS, ROWS, CheckpointFolder
from vertikal.node.runs.measuring.evaluation import (
    HeldOut,
    Trained,
    evaluate,
    evaluate_folds,
    own_columns,
)
from vertikal.node.runs.measuring.fits import FitRows, Judged, judge_fits, judged_of
from vertikal.node.runs.measuring.row_parts import (
    JUDGING,
    agree_on_parts,
    choose_parts,
    parts_rows,
)
from vertikal.node.runs.measuring.search import search
from vertikal.node.runs.progress import ProgressReporter
from vertikal.node.runs.workplaces import Workplace
from vertikal.node.storage.prepared_correlation import CorrelationFile
from vertikal.party.checkpoints import Checkpoints, PartOfCheckpoints
from vertikal.party.party import Labels, Party, digest
from vertikal.privacy.ledger import Disclosure
from vertikal.reused_memory import reused_memory
from vertikal.secure.keys.prg import derive_key
from vertikal.side_by_side import parties_at_work
from vertikal.version import __version__

Array = npt.NDArray[Any]

FAREWELL = 5.0
"""Seconds that a party which failed takes to tell the others why."""
NOTHING, ALIGNED, TRAINED = 0, 1, 2

COMMON = Disclosure(
    "common rows",
    "how many rows all parties with tables have in common",
    "a dealer without data learns this number, and no id",
    masked=False,
)


class Reached(NamedTuple):
    """The last stage that a party has finished, and in which run if it has trained.

    Shards of two runs are no model. ``mark`` tells one secret of the party from another, and
    nothing else about it.
    """

    stage: int
    attempt: int = 0
    mark: str = ""


class RunRows(NamedTuple):
    """The rows of a party's table that a run uses, in the common order."""

    trained: Array
    held_out: Array | None = None
    """Rows that are held out of training, if some are."""
    parts: Array | None = None
    """The part of each row of training (`row_parts`), if the job has several."""
    split: str = ""
    """Digest of the choice of these rows, which all parties must share."""


@dataclass(frozen=True)
class PartyRun:
    """All that a run works with at one party."""

    place: Workplace
    mesh: Mesh
    reporter: ProgressReporter
    prepared: CorrelationFile | None = None
    """Correlation that a dealer without columns has computed ahead of this run."""
    version: str = __version__
    """Release or protocol of the run, which must be the same at all parties."""
    steps: list[Party] = field(default_factory=list)
    """The party in each step of the run so far: their ledgers say what left it."""


@dataclass(frozen=True)
class Columns:
    """A party's rows in the common order, ready for training."""

    table: Table
    labels: Labels | None
    preparation: Preparation
    classes: tuple[str, ...] = ()
    """Names of the classes at a label party; of two the second is the positive one."""
    test: Table | None = None
    """Rows of other people, to be predicted after training."""
    held_out: HeldOut | None = None
    """Rows that are predicted after training to measure the model."""
    parts: Array | None = None
    """The part of each row of training (`row_parts`), if the job has several."""
    split: str = ""
    """Digest of the choice of these rows, which all parties must share."""
    profile: Profile | None = None
    """The columns as they are in the rows of training, for this party's owner."""

    @property
    def rows(self) -> int:
        """All rows that the job uses."""
        return self.table.rows + (self.held_out.table.rows if self.held_out else 0)


def run_party(run: PartyRun) -> Any:
    """Take part in a run and say good-bye; returns this party's shard if it was trained now.

    The whole error is for this party alone, since it may show cells or names of columns. The others
    are told less, before it is raised.
    """
    mesh, place = run.mesh, run.place
    try:
        try:
            with one_blas_thread(), reused_memory(), parties_at_work(1):
                try:
                    shard = _take_part(run)
                finally:
                    place.end_workers()
        except BaseException:
            # A full disk is met here again, and must not hide where it was met first.
            with suppress(DiskFull):
                _note_sent(run)
            raise
        _note_sent(run)
    except BaseException as error:
        told = error
        if isinstance(error, OSError) and is_full(error):
            told = disk_error(Path(error.filename or place.folder), error)
        mesh.fail(peer_message(place.me, told))
        if isinstance(mesh, PacketMesh):
            mesh.stop(FAREWELL)
        run.reporter.close(_own_words(told))
        if told is error:
            raise
        raise told from None
    mesh.close()
    run.reporter.close("done")
    if isinstance(mesh, PacketMesh):
        mesh.stop()
    return shard


def _take_part(run: PartyRun) -> Any:
    """Go through the stages; return when this party's shard is in its store."""
    place, mesh, kept = run.place, run.mesh, run.place.checkpoints
    # Rows that need no alignment are known: a table that cannot be used is found before anything is
    # sent.
    columns = _prepare(run, None) if kept is None else None
    if isinstance(mesh, PacketMesh):
        run.reporter.begin(place.me, "connect", None)
        mesh.connect()
    if kept is not None:
        reached = _resume(run, kept)
        if reached < TRAINED:
            columns = _prepare(run, _common_rows(run, kept, reached))
    elif parts_rows(place) and columns is not None:
        columns = _prepare(run, _part(run, np.arange(columns.table.rows)))
    shard = None if columns is None else _learn(run, columns)
    if kept is not None:
        # Nobody leaves before everybody has its shard: a run that ends here has ended everywhere.
        _tell_stage(mesh, Reached(TRAINED))
    if columns is not None and columns.test is not None:
        _predict(run, shard, columns, columns.test)
    return shard


def _resume(run: PartyRun, kept: CheckpointFolder) -> int:
    """Tell one another how far each party is; returns the stage that all have finished."""
    told = _tell_stage(run.mesh, _stage(run, kept))
    reached = min(one.stage for one in told.values())
    if reached == TRAINED and len({one.attempt for one in told.values()}) > 1:
        reached = ALIGNED
    if reached < TRAINED:
        if run.place.finished:
            # Its checkpoints are gone, and with them the count of what was opened.
            raise InputError(
                f"{run.place.me} has finished this job; submit it again to train another model"
            )
        _compare_marks(kept, {name: one.mark for name, one in told.items()})
    return reached


def _stage(run: PartyRun, kept: CheckpointFolder) -> Reached:
    """The last stage of the job that this party has finished."""
    place = run.place
    mark = derive_key(place.secret, "mark").hex()
    model = place.models.newest_of_job(place.facts["job"]) if place.models else None
    if model is not None:
        return Reached(TRAINED, model.facts.get("attempt", 0), mark)
    return Reached(NOTHING if kept.read(ROWS) is None else ALIGNED, 0, mark)


def _compare_marks(kept: CheckpointFolder, marks: dict[str, str]) -> None:
    """Forget blocks and answers that were made with another secret of some party.

    A loss of power may take a secret that was just drawn; what others kept does not fit a new one.
    """
    now = msgspec.json.encode(marks, order="sorted")
    if kept.read(MARKS) != now:
        kept.forget_work()
        kept.write(MARKS, now)


def _tell_stage(mesh: Mesh, mine: Reached) -> dict[str, Reached]:
    """Tell all others how far this party is; returns how far everybody is."""
    for peer in mesh.peers:
        mesh.send(peer, "stage", mine._asdict())
    stages = {mesh.me: mine}
    for peer in mesh.peers:
        told: Any = mesh.recv(peer, "stage")
        try:
            stages[peer] = Reached(**told)
        except TypeError:
            raise _no_stage(mesh, peer, told) from None
        kinds = tuple(map(type, stages[peer]))
        if kinds != (int, int, str) or stages[peer].stage not in (NOTHING, ALIGNED, TRAINED):
            raise _no_stage(mesh, peer, told)
    return stages


def _no_stage(mesh: Mesh, peer: str, told: Any) -> MeshError:
    return MeshError(f"{mesh.me}: {peer} says that it has come to {told!r:.60}, which is no stage")


def _common_rows(run: PartyRun, kept: CheckpointFolder, reached: int) -> RunRows:
    """Find this party's rows that all have, in the common order, or read them from checkpoints."""
    place = run.place
    if place.table is None:
        if reached == NOTHING:
            _hear_rows(run, kept)
        return _part(run, np.arange(int.from_bytes(kept.read(ROWS) or b"", "big")))
    cells: list[Any] = []
    place.check_table(place.table.source, cells)
    ids = normalise(place.me, cells)
    if reached == NOTHING:
        _align(run, kept, ids)
    rows = _part(run, np.frombuffer(kept.read(ROWS) or b"", np.int64))
    if len(rows.trained) < place.least_rows:
        raise PeerVisibleError(
            f"{place.me} takes part with {place.least_rows} rows of training at least, and the "
            f"evaluation leaves {len(rows.trained)}"
        )
    # Of the rows that the model is made of: those held out leave no trace in it.
    place.check_rows({ids.values[row]: int(row) for row in rows.trained})
    return rows


def _part(run: PartyRun, rows: Array) -> RunRows:
    """Part the common rows into those of training and those held out, as the leader says."""
    place = run.place
    if not parts_rows(place):
        return RunRows(rows)
    party = _party(run, Table(place.me, (), np.zeros((len(rows), 0))), "hold out")
    parts = agree_on_parts(party, place, rows)
    held = parts.held
    if held.any():
        place.note("held out", f"{held.sum()} of {len(rows)} common rows, for evaluation")
    if parts.folds is not None:
        fewest = int(np.bincount(parts.numbers)[1:].min())
        if fewest < place.least_difference:
            raise PeerVisibleError(
                f"{place.me} takes part in fits that differ by {place.least_difference} rows at "
                f"least (least_difference), and a fold has {fewest}; ask for fewer folds"
            )
        before = int((parts.numbers == TRAINED).sum()) if parts.by_time else place.least_rows
        if before < place.least_rows:
            raise PeerVisibleError(
                f"{place.me} takes part with {place.least_rows} common rows at least, and the "
                f"first fold by time is trained on {before}; ask for fewer folds"
            )
        place.note("folds", f"{parts.folds}, of {fewest} of {len(rows)} common rows or more")
    return RunRows(
        rows[~held], rows[held] if held.any() else None, parts.numbers[~held], parts.digest
    )


def _align(run: PartyRun, kept: CheckpointFolder, ids: Ids) -> None:
    """Find the common rows, in an order that all share, and keep them for later runs."""
    place = run.place
    party = _party(run, Table(place.me, (), np.zeros((0, 0))), "align")
    most = place.ids_of_others(len(ids))
    brought = "".join(f", at most {count} ids of {name}" for name, count in most.items())
    # Before anything is sent: the leader may know the common ids of a run that ends half way.
    words = f"attempt {place.facts['attempt']}, {len(ids)} own rows{brought}"
    place.note("alignment begins", words)
    group = place.job.table_parties
    found = align(party, ids, least=place.least_rows, most=most, group=group)
    place.note("aligned", f"{found.matched} of {found.own} rows")
    known = kept.read(ROWS)
    if known is not None and known != found.rows.tobytes():
        # What earlier runs opened was about those rows; over others it would tell the difference.
        raise InputError(
            "the common rows are not those of an earlier run of this job: a table has changed at "
            "some party; submit the job again"
        )
    kept.write(ROWS, found.rows.tobytes())
    if place.job.bare_dealer is not None:
        party.tell(place.job.bare_dealer, {"rows": found.matched}, COMMON)


def _hear_rows(run: PartyRun, kept: CheckpointFolder) -> None:
    """At a dealer without data: hear from all others how many rows they have in common."""
    place = run.place
    party = _party(run, Table(place.me, (), np.zeros((0, 0))), "align")
    said = {}
    # One wait for all of the others' waits; whoever is lost meanwhile still ends it.
    with party.clock.stage("alignment of the others"), party.waiting(10 * party.deadline):
        for name in place.job.table_parties:
            told: Any = party.hear(name, COMMON)
            said[name] = told.get("rows") if isinstance(told, dict) else None
    rows = said[party.leader]
    if type(rows) is not int or rows < 1 or set(said.values()) != {rows}:
        words = ", ".join(f"{name} says {number!r:.20}" for name, number in said.items())
        raise AgreementError(
            f"{place.me}: the others must agree on the number of their common rows: {words}"
        )
    place.note("aligned", f"{rows} rows of the others")
    kept.write(ROWS, rows.to_bytes(8, "big"))


def _prepare(run: PartyRun, rows: RunRows | None) -> Columns:
    with run.reporter.stage("prepare"):
        columns = prepare(run.place, rows)
    return columns if rows is None else replace(columns, parts=rows.parts, split=rows.split)


def prepare(place: Workplace, rows: RunRows | None = None) -> Columns:
    """Read a party's table and turn it into numbers: these rows, or all of them as they come.

    Preparation is learned on the rows of training; rows held out are prepared like strangers'.
    """
    used, job = place.table, place.job
    if used is None:
        return _columns_of_dealer(place, rows)
    trained = None if rows is None else rows.trained
    preparation, prepared = learn_preparation(
        used.source,
        used.columns,
        rows=trained,
        missing=used.missing,
        categories=used.categories,
        apply=place.read_rows,
    )
    for remark in preparation.remarks:
        place.note("prepared", remark)
    settings = job.algorithm_settings()
    if algorithm_named(job.algorithm).exposure(settings).private:
        _check_private(place.me, used.columns, prepared.table)
    profile = learn_profile(used.source, preparation, trained)
    found = _labels(place, used.source, rows)
    if rows is None and parts_rows(place) and place.me == job.leader:
        # A column that no rows can be held out by is found before anything is sent.
        choose_parts(place, np.arange(prepared.table.rows))
    # Columns and labels were read after the ids, by hours where others were waited for: another
    # table would give these people the rows of others. Nothing of the columns has left so far.
    place.check_table(used.source)
    test = _test_table(place, preparation)
    held_out = None
    if rows is not None and rows.held_out is not None:
        table = preparation.apply(used.source, rows.held_out).table
        held_out = HeldOut(table, None if found is None else _labels_of(found, len(rows.trained)))
    if found is None:
        return Columns(
            prepared.table, None, preparation, test=test, held_out=held_out, profile=profile
        )
    labels = _labels_of(found, 0, prepared.table.rows)
    return Columns(
        prepared.table, labels, preparation, found.classes, test, held_out, profile=profile
    )


def _columns_of_dealer(place: Workplace, rows: RunRows | None) -> Columns:
    """Make the part of a dealer without data: no columns, as many rows as the others have."""
    count = place.job.parties[place.me].rows if rows is None else len(rows.trained)
    if count is None:
        raise InputError.of(
            f"rows of {place.me}", "given where no service tells it: those of the others", None
        )
    nothing = Preparation(place.me, "refuse", ())
    held_out = None
    if rows is not None and rows.held_out is not None:
        held_out = HeldOut(Table(place.me, (), np.empty((len(rows.held_out), 0))), None)
    return Columns(Table(place.me, (), np.empty((count, 0))), None, nothing, held_out=held_out)


def _check_private(me: str, columns: tuple[str, ...], table: Table) -> None:
    """With differential privacy columns must be as they came, whatever other rows hold.

    Which categories there are would be told by the columns that are made of them.
    """
    if table.columns != columns:
        raise InputError(
            f"columns of {me} must be numbers that vary, without missing cells, in a job with "
            "differential privacy"
        )


def _labels(place: Workplace, source: Source, rows: RunRows | None) -> LabelledRows | None:
    """Read the labels of all rows, those of training first."""
    plan = place.job.label_plan(place.me)
    if plan is None:
        return None
    if rows is None:
        return read_labels(source, plan)
    together = [one for one in (rows.trained, rows.held_out) if one is not None]
    return read_labels(source, plan, np.concatenate(together))


def _labels_of(found: LabelledRows, start: int, stop: int | None = None) -> Labels:
    known = None if found.known is None else found.known[start:stop]
    return Labels(found.targets[start:stop], found.weights[start:stop], known)


def _test_table(place: Workplace, preparation: Preparation) -> Table | None:
    """Read the rows to predict after training, prepared as the training rows were."""
    if place.test is None:
        return None
    if not set(preparation.names) <= set(place.test.columns):
        raise InputError.of(
            f"test of {place.me}",
            f"a table with the columns {list(preparation.names)}",
            list(place.test.columns),
        )
    return preparation.apply(place.test).table


def _learn(run: PartyRun, columns: Columns) -> Any:
    """Search settings if the job does, run its program, and measure; the shard is stored."""
    place = run.place
    place.book(columns.rows)
    candidate, table = _search(run, columns)
    settings = place.job.algorithm_settings(candidate)

    def publish(
        shard: Any, evaluation: Evaluation | None, relevance: dict[str, float] | None = None
    ) -> None:
        found = Findings(place.job.candidates[candidate], evaluation, table, relevance)
        _publish(run, columns, shard, found)

    def save_early(shard: Any) -> None:
        # A run that is resumed stores nothing early: a stored shard says that the job is done.
        if place.checkpoints is None:
            publish(shard, None)

    folds = _folds(place.job, columns, settings)
    shard, judged = _train(run, columns, settings, folds, save_early)
    model = Trained(settings, shard, columns.table, columns.labels, columns.classes)
    evaluation = _evaluate(run, columns, model, folds, judged)
    relevance = {}
    if columns.held_out is not None:
        relevance = own_columns(place, partial(_party, run), model, columns.held_out)
    publish(shard, evaluation, relevance)
    return shard


class Findings(NamedTuple):
    """Findings of a run beside the shard: settings that it chose, and measures."""

    settings: dict[str, Any]
    evaluation: Evaluation | None = None
    search: SearchTable | None = None
    relevance: dict[str, float] | None = None
    """Relevance of this party's own columns, if the job says it."""


def _search(run: PartyRun, columns: Columns) -> tuple[int, SearchTable | None]:
    """Choose among the job's settings; return the number of the best, and the leader's table."""
    place = run.place
    if place.job.search is None or columns.parts is None:
        return 0, None
    with run.reporter.stage("search"):
        best, table = search(
            place,
            partial(_party, run),
            columns.table,
            columns.labels,
            columns.parts == JUDGING,
            columns.classes,
        )
    place.note("searched", f"chosen: {settings_line(place.job.candidates[best])}")
    return best, table


def _folds(job: Job, columns: Columns, settings: Any) -> list[Fit]:
    """List the fits of all folds, each without the rows of one; none without folds.

    By time a fit has the rows before its fold only.
    """
    plan, parts = job.evaluation, columns.parts
    if plan is None or plan.folds is None or parts is None:
        return []
    folds = range(1, plan.folds + 1)
    if plan.time is not None:
        return [Fit(settings, parts < fold, parts == fold) for fold in folds]
    return [Fit(settings, parts != fold) for fold in folds]


def _train(
    run: PartyRun,
    columns: Columns,
    settings: Any,
    folds: list[Fit],
    save_early: Callable[[Any], None],
) -> tuple[Any, list[Judged] | None]:
    """Train on all rows, and without each fold; return the shard, and what the leader judges."""
    place, algorithm = run.place, algorithm_named(run.place.job.algorithm)
    shared = bool(folds) and algorithm.shares_features(settings, settings)
    judged = None
    if folds and not shared:
        rows = FitRows(columns.table, columns.labels)
        judged = judge_fits(place, partial(_party, run), "fold", algorithm, folds, rows)
    party = _party(
        run,
        columns.table,
        "train",
        labels=columns.labels,
        settings=settings,
        save_shard=save_early,
        split=columns.split,
    )
    if not shared:
        return algorithm.train(party, settings, place.budget, place.facts["job"]), judged
    fits = [*folds, Fit(settings, np.ones(columns.table.rows, bool))]
    fitted = algorithm.fit_several(party, fits)
    return fitted[-1].shard, judged_of(algorithm, fits, fitted) if party.leads else None


def _evaluate(
    run: PartyRun,
    columns: Columns,
    model: Trained,
    folds: list[Fit],
    judged: list[Judged] | None,
) -> Evaluation | None:
    """Measure the model, or the fits of its folds, on rows held out: at the leader."""
    steps = partial(_party, run)
    with run.reporter.stage("evaluate"):
        if folds:
            found = evaluate_folds(run.place, steps, model, folds, judged, run.reporter)
        elif columns.held_out is not None:
            found = evaluate(run.place, steps, model, columns.held_out, run.reporter)
        else:
            found = None
    if found is not None:
        run.place.note("evaluated", found.first_line)
        run.reporter.result = found.first_line
    return found


def _publish(run: PartyRun, columns: Columns, shard: Any, found: Findings) -> None:
    """Store the shard, in place of those that earlier runs of this job have stored."""
    place = run.place
    if place.models is None:
        return
    earlier = place.models.of_job(place.facts["job"])
    algorithm = algorithm_named(place.job.algorithm)
    facts = {**place.facts, **_facts(place, columns), **algorithm.facts_for_owner(shard)}
    facts["settings"] = {**place.job.settings, **found.settings}
    if found.relevance:
        ordered = sorted(found.relevance.items(), key=lambda item: -item[1])
        facts["relevance"] = ", ".join(f"{name} {value:.2f}" for name, value in ordered)
    if columns.classes:
        facts["classes"] = list(columns.classes)
    if len(columns.classes) == 2:
        facts["positive"] = columns.classes[1]
    evaluation = found.evaluation
    if evaluation is not None and place.job.replaces == "no worse":
        reason = reason_to_keep_back(place.models, place.model, evaluation, without=earlier)
        if reason:
            facts[KEPT_BACK] = reason
            place.note("kept back", reason)
    place.models.save(
        place.model,
        shard,
        algorithm,
        preparation=columns.preparation,
        profile=columns.profile,
        record=TrainingRecord.of(place.me, run.steps),
        evaluation=found.evaluation,
        search=found.search,
        facts=facts,
    )
    for one in earlier:
        place.models.delete(one.name, one.version)


def _facts(place: Workplace, columns: Columns) -> dict[str, Any]:
    """Tell what the model is of, for this party's owner: all of it stands in the job."""
    job = place.job
    facts: dict[str, Any] = {"rows": columns.table.rows}
    if columns.held_out is not None:
        facts["held_out"] = columns.held_out.table.rows
    return facts | {
        "algorithm": job.algorithm,
        "columns": list(columns.preparation.names),
        "parties": {
            name: {
                key: list(value) if isinstance(value, tuple) else value
                for key in ("table", "label", "columns")
                if (value := getattr(part, key)) is not None
            }
            for name, part in job.parties.items()
        },
    }


def _predict(run: PartyRun, shard: Any, columns: Columns, test: Table) -> None:
    """Predict the test rows; the first label party keeps the values."""
    job = run.place.job
    algorithm = algorithm_named(job.algorithm)
    party = _party(run, test, "predict", settings=shard.settings)
    values = algorithm.predict(party, shard)
    if values is not None:
        reading = ScoreReading.of(algorithm, shard.settings, shard, columns.classes)
        run.place.write_predictions(reading.records(values))


def _party(
    run: PartyRun,
    table: Table,
    step: str,
    *,
    labels: Labels | None = None,
    settings: Any = None,
    fit: bool = False,
    save_shard: Callable[[Any], None] = lambda shard: None,
    split: str = "",
) -> Party:
    """Make this party for one step of the run; all must have the same settings and ``split``.

    A ``fit`` beside the model's own has its own secret, and its own part of the checkpoints.
    """
    place, job = run.place, run.place.job
    used = job.algorithm_settings() if settings is None else settings
    checkpoints: Checkpoints | None = None
    if step == "train":
        checkpoints = place.checkpoints
    elif fit and place.checkpoints is not None:
        checkpoints = PartOfCheckpoints(place.checkpoints, step)
    party = Party(
        run.mesh,
        table,
        label_parties=job.label_parties,
        labels=labels,
        secret=derive_key(place.secret, "fit", step) if fit else place.secret,
        job=f"{place.run}/{step}",
        settings_digest="" if step == "align" else digest(used) + split,
        version=run.version,
        masking=job.masking,
        shape=job.shape,
        observer=run.reporter,
        save_shard=save_shard,
        # Other steps are no work to go on with: what they open is counted where they begin.
        checkpoints=checkpoints,
        prepared=run.prepared if step == "train" else None,
        place=place.compute_place(),
    )
    run.steps.append(party)
    return party


def _note_sent(run: PartyRun) -> None:
    run.place.note_sent([step.ledger for step in run.steps])


def _own_words(error: BaseException) -> str:
    """Write the error in one line, for the owner of this party."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    kind, words = type(error).__name__, " ".join(str(error).split())
    return words if isinstance(error, VertikalError) else f"{kind}: {words}"
