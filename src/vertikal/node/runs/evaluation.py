"""The evaluation of a model in the run that trains it: rows held out, predicted and measured.

The first label party, the leader, chooses the rows and tells the others their numbers in the common
order. All train on the rest. Then the held-out rows are predicted as rows of strangers are, and the
leader measures: the model, the same learner on its own columns alone, and, if the job says so, the
model when the held-out rows of one party are shuffled by a permutation that all know.

Where predictions are opened to so many bits, every party counts those it takes part in, on disk and
before it does, and stops at `TRIES` of each. The leader keeps what it got, so that a run that is
taken up again opens only what it lacks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Algorithm
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.row_split import hold_out
from vertikal.data.tables import Table
from vertikal.errors import AgreementError, InputError, PeerVisibleError
from vertikal.mesh import local_meshes
from vertikal.metrics.intervals import DRAWS
from vertikal.metrics.measures import Measures
from vertikal.node.config.evaluation_plan import HELD_OUT, TO_PREDICT, TRIES
from vertikal.node.config.job_file import Job
from vertikal.node.models.evaluation import Evaluation, measure
from vertikal.node.models.score_reading import ScoreReading
from vertikal.node.runs.checkpoint_folder import SPLIT, CheckpointFolder
from vertikal.node.runs.workplaces import Workplace
from vertikal.party.checkpoints import OPENED
from vertikal.party.clock import Observer
from vertikal.party.party import Labels, Party, digest
from vertikal.secure.keys.prg import derive_key
from vertikal.version import __version__

Array = npt.NDArray[Any]
Step = Callable[[Table, str], Party]
"""Makes this party for one step of the run, on a table and without labels."""

_COUNTED = f"{OPENED}-evaluation"
_KEPT = "held-out"


@dataclass(frozen=True)
class HeldOut:
    """A party's rows that are held out, in the common order, and their labels if it has them."""

    table: Table
    labels: Labels | None


def choose_rows(place: Workplace, rows: Array) -> Array:
    """Choose at the leader which of ``rows`` of its table are held out: (rows,) bool.

    The choice is drawn from the party's secret of the job, so that all runs of it have the same.
    """
    wanted = place.job.evaluation
    if wanted is None or place.table is None:
        raise InputError.of("evaluation", "asked for at a party with a table", place.me)
    seed = int.from_bytes(derive_key(place.secret, "held-out rows")[:8], "big")
    return hold_out(
        place.table.source,
        rows,
        wanted.holdout,
        np.random.default_rng(seed),
        group=wanted.group,
        time=wanted.time,
    )


def agree_on_rows(party: Party, place: Workplace, rows: Array) -> tuple[Array, str]:
    """Return which rows are held out (rows,) bool, as the leader has chosen them, and a digest.

    All parties compare the digest before they train: a leader that told each of them other rows
    would join one person's columns with another's. A dealer without data learns the digest and how
    many rows are held out, and gets as many at the end. Later runs of a job must hold out the same
    rows: what was opened is counted on them.
    """
    job, kept = place.job, place.checkpoints
    if party.leads:
        held = choose_rows(place, rows)
        for name in party.parties:
            if name != party.name:
                count = {"rows": int(held.sum()), "digest": digest_of_rows(held)}
                party.tell(
                    name, np.packbits(held) if name in job.table_parties else count, HELD_OUT
                )
        agreed = digest_of_rows(held)
    else:
        held, agreed = _told(party, len(rows), bare=place.table is None)
    _keep_rows(kept, held)
    return held, agreed


def digest_of_rows(held: Array) -> str:
    """Compute the SHA-256 of a choice of rows."""
    return hashlib.sha256(np.packbits(held).tobytes()).hexdigest()


def _told(party: Party, rows: int, *, bare: bool) -> tuple[Array, str]:
    """Hear from the leader which rows are held out."""
    told: Any = party.hear(party.leader, HELD_OUT)
    agreed = ""
    if bare and isinstance(told, dict) and type(told.get("rows")) is int:
        held = np.arange(rows) >= rows - told["rows"]
        agreed = str(told.get("digest"))
    elif (
        not bare
        and isinstance(told, np.ndarray)
        and told.dtype == np.uint8
        and told.size == -(-rows // 8)
    ):
        held = np.unpackbits(told.reshape(-1), count=rows).astype(bool)
    else:
        raise AgreementError(f"{party.name}: {party.leader} tells of no rows to hold out")
    if not 0 < held.sum() < rows:
        raise AgreementError(
            f"{party.name}: {party.leader} holds out {held.sum()} of {rows} rows, which leaves none"
        )
    return np.asarray(held), agreed or digest_of_rows(held)


def _keep_rows(kept: CheckpointFolder | None, held: Array) -> None:
    if kept is None:
        return
    now, known = np.packbits(held).tobytes(), kept.read(SPLIT)
    if known is not None and known != now:
        raise PeerVisibleError(
            "the held-out rows are not those of an earlier run of this job; submit the job again"
        )
    kept.write(SPLIT, now)


def evaluate(
    place: Workplace,
    step: Step,
    shard: Any,
    held_out: HeldOut,
    trained: tuple[Table, Labels | None],
    classes: tuple[str, ...],
    observer: Observer,
) -> Evaluation | None:
    """Predict the held-out rows with the others; return the measures at the leader, else None."""
    job = place.job
    f = _predict_all(place, step, shard, held_out.table)
    table, labels = trained
    if f is None or labels is None or held_out.labels is None or job.evaluation is None:
        return None
    algorithm, settings = algorithm_named(job.algorithm), job.algorithm_settings()

    targets = held_out.labels.targets

    def measured(values: Array, shard: Any = shard, *, draws: int = DRAWS) -> Measures:
        reading = ScoreReading.of(algorithm, settings, shard, classes)
        return measure(reading, values, targets, draws)

    together = measured(f[0])
    main = together.numbers[together.main].value
    contributions = {}
    for name, shuffled in zip(_shuffled(job), f[1:], strict=True):
        without = measured(shuffled, draws=0).numbers[together.main].value
        contributions[name] = None if main is None or without is None else main - without
    own = learn_alone(algorithm, settings, place, (table, labels), held_out.table, observer)
    return Evaluation(
        job.evaluation.way, table.rows, place.me, together, measured(*own), contributions
    )


def _shuffled(job: Job) -> tuple[str, ...]:
    """The parties whose rows are shuffled, one after the other."""
    return job.table_parties if job.evaluation and job.evaluation.contributions else ()


def _predict_all(place: Workplace, step: Step, shard: Any, table: Table) -> list[Array] | None:
    """Take part in all predictions of the held-out rows that the leader lacks.

    Returns f (rows, outputs) of each at the leader, first as they are, then shuffled by party.
    """
    job = place.job
    algorithm, settings = algorithm_named(job.algorithm), job.algorithm_settings()
    permutation = np.random.default_rng(settings.seed).permutation(table.rows)
    passes = ("", *_shuffled(job))
    party = step(table, "evaluate")
    memory = _Kept(place.checkpoints, algorithm, shard) if party.leads else None
    found = [memory.read(number) if memory else None for number in range(len(passes))]
    lacking = _agree_on_passes(party, [number for number, f in enumerate(found) if f is None])
    for number in lacking:
        if algorithm.exposure(settings).prediction_bits:
            _count(place, number)
        own = table
        if passes[number] == place.me:
            own = Table(table.party, table.columns, table.block(permutation))
        values = algorithm.predict(step(own, f"evaluate {number}"), shard)
        if memory is not None:
            if values is None:
                raise InputError(f"{place.me} leads and was told no predictions of held-out rows")
            memory.write(number, values)
            found[number] = values
    return [f for f in found if f is not None] if party.leads else None


def _agree_on_passes(party: Party, lacking: list[int]) -> list[int]:
    """Return the numbers of the predictions that the leader lacks."""
    if party.leads:
        for name in party.parties:
            if name != party.name:
                party.tell(name, {"lacking": lacking}, TO_PREDICT)
        return lacking
    message: Any = party.hear(party.leader, TO_PREDICT)
    told = message.get("lacking") if isinstance(message, dict) else None
    if not isinstance(told, list) or any(type(one) is not int or one < 0 for one in told):
        raise AgreementError(f"{party.name}: {party.leader} tells of no predictions to make")
    return told


def _count(place: Workplace, number: int) -> None:
    """Write down that held-out rows are about to be predicted; refuse more than was agreed."""
    job, kept = place.job, place.checkpoints
    if number >= job.held_out_predictions:
        raise PeerVisibleError(f"{place.me}: no prediction {number} of held-out rows was agreed")
    if kept is None:
        return
    name = f"{_COUNTED}-{number}"
    if len(kept.entries(name)) >= TRIES:
        raise PeerVisibleError(
            f"{place.me} has predicted the held-out rows of this job {TRIES} times, in runs that "
            "were broken off, and does not again; submit the job again"
        )
    kept.append(name, place.run.encode(), durable=True)


class _Kept:
    """Predictions of held-out rows that the leader has, by the shard that made them."""

    def __init__(
        self, kept: CheckpointFolder | None, algorithm: Algorithm[Any, Any], shard: Any
    ) -> None:
        self._kept = kept
        content = msgspec.json.encode(
            algorithm.to_store(shard), enc_hook=lambda array: array.tobytes()
        )
        self._model = hashlib.sha256(content).digest()

    def read(self, number: int) -> Array | None:
        raw = None if self._kept is None else self._kept.read(f"{_KEPT}-{number}")
        if raw is None or raw[:32] != self._model:
            return None
        outputs = int.from_bytes(raw[32:36], "big")
        return np.frombuffer(raw[36:], np.float64).reshape(-1, outputs)

    def write(self, number: int, f: Array) -> None:
        if self._kept is not None:
            content = self._model + f.shape[1].to_bytes(4, "big") + f.astype(np.float64).tobytes()
            self._kept.write(f"{_KEPT}-{number}", content)


def learn_alone(
    algorithm: Algorithm[Any, Any],
    settings: Any,
    place: Workplace,
    trained: tuple[Table, Labels],
    held_out: Table,
    observer: Observer,
) -> tuple[Array, Any]:
    """Let the same learner predict the held-out rows from this party's columns alone: f, shard.

    It is a run of one party: nothing is sent.
    """
    own = algorithm.alone(settings, place.me)

    def party(rows: Table, given: Labels | None, step: str) -> Party:
        return Party(
            local_meshes((place.me,))[place.me],
            rows,
            label_parties=(place.me,),
            labels=given,
            secret=derive_key(place.secret, "alone"),
            job=f"alone/{step}",
            settings_digest=digest(own),
            version=__version__,
            observer=observer,
        )

    shard = algorithm.train(party(*trained, "train"), own)
    values = algorithm.predict(party(held_out, None, "predict"), shard)
    if values is None:
        raise InputError(f"{algorithm.name} predicts nothing at one party alone")
    return values, shard
