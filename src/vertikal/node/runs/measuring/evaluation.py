"""The evaluation of a model in the run that trains it: rows held out, predicted and measured.

Held-out rows are predicted as rows of strangers are, and the leader measures: the model, the same
learner on its own columns alone, a linear model of all columns, and, if the job says so, the model
when the held-out rows of one party are shuffled by a permutation that all know. With folds every
row (by time, all but the first ones) is held out of one fit, and the predictions of all fits are
measured together.

Where predictions are opened to so many bits, every party counts those it takes part in, on disk and
before it does, and stops at `TRIES` of each. The leader keeps what it got, so that a run that is
taken up again opens only what it lacks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Algorithm, Fit
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.compute.place import Place
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.mesh import local_meshes
from vertikal.metrics.intervals import DRAWS
from vertikal.metrics.measures import Measures
from vertikal.node.config.job_file import Job
from vertikal.node.config.job_fits import linear_of
from vertikal.node.models.evaluation import Evaluation, measure, measure_parts
from vertikal.node.models.score_reading import ScoreReading
from vertikal.node.runs.checkpoint_folder import CheckpointFolder
from vertikal.node.runs.measuring.fits import (
    FitRows,
    Judged,
    Steps,
    agree_on_lacking,
    count_prediction,
    judge_fits,
)
from vertikal.node.runs.workplaces import Workplace
from vertikal.party.clock import Observer
from vertikal.party.party import Labels, Party, digest
from vertikal.secure.keys.prg import derive_key
from vertikal.version import __version__

Array = npt.NDArray[Any]

_KEPT = "held-out"


@dataclass(frozen=True)
class HeldOut:
    """A party's rows that are held out, in the common order, and their labels if it has them."""

    table: Table
    labels: Labels | None


@dataclass(frozen=True)
class Trained:
    """The model of a run at this party, and the rows that it was trained on."""

    settings: Any
    shard: Any
    table: Table
    labels: Labels | None
    classes: tuple[str, ...]


def evaluate(
    place: Workplace, steps: Steps, model: Trained, held_out: HeldOut, observer: Observer
) -> Evaluation | None:
    """Predict the held-out rows with the others; return the measures at the leader, else None."""
    job, settings = place.job, model.settings
    f = _predict_all(place, steps, model, held_out.table)
    rows = FitRows(model.table, model.labels, held_out.table)
    whole = Fit(settings, np.ones(model.table.rows, bool))
    straight = _linear(place, steps, settings, rows, [whole])
    labels = model.labels
    if f is None or labels is None or held_out.labels is None or job.evaluation is None:
        return None
    algorithm, targets = algorithm_named(job.algorithm), held_out.labels.targets

    def measured(values: Array, shard: Any = model.shard, *, draws: int = DRAWS) -> Measures:
        reading = ScoreReading.of(algorithm, settings, shard, model.classes)
        return measure(reading, values, targets, draws)

    together = measured(f[0])
    main = together.numbers[together.main].value
    contributions = {}
    for name, shuffled in zip(_shuffled(job), f[1:], strict=True):
        without = measured(shuffled, draws=0).numbers[together.main].value
        contributions[name] = None if main is None or without is None else main - without
    own = learn_alone(algorithm, settings, place, (model.table, labels), held_out.table, observer)
    return Evaluation(
        job.evaluation.way,
        model.table.rows,
        place.me,
        together,
        measured(*own),
        contributions,
        _measured_parts(straight, model.classes, [targets]),
    )


def evaluate_folds(
    place: Workplace,
    steps: Steps,
    model: Trained,
    fits: Sequence[Fit],
    judged: Sequence[Judged] | None,
    observer: Observer,
) -> Evaluation | None:
    """Measure at the leader what the fits of all folds predicted; None at the others.

    ``judged`` are the predictions of the model's own learner, one for each of ``fits``.
    """
    job, settings, labels = place.job, model.settings, model.labels
    algorithm, rows = algorithm_named(job.algorithm), FitRows(model.table, model.labels)
    straight = _linear(place, steps, settings, rows, fits)
    if judged is None or labels is None or job.evaluation is None:
        return None
    targets = [labels.targets[fit.predicted] for fit in fits]
    together = _measured_parts((algorithm, judged), model.classes, targets)
    if together is None:
        return None
    own = []
    for fit in fits:
        table, known = rows.trained(fit)
        assert known is not None
        f, shard = learn_alone(
            algorithm, settings, place, (table, known), rows.predicted(fit), observer
        )
        own.append(Judged(settings, algorithm.threshold(shard), f))
    alone = _measured_parts((algorithm, own), model.classes, targets)
    assert alone is not None
    each = [
        measure(one.reading(algorithm, model.classes), one.f, there, draws=0)
        for one, there in zip(judged, targets, strict=True)
    ]
    return Evaluation(
        job.evaluation.way,
        min(int(fit.trained.sum()) for fit in fits),
        place.me,
        together,
        alone,
        linear=_measured_parts(straight, model.classes, targets),
        folds=tuple(one.numbers[together.main].value for one in each),
    )


def own_columns(
    place: Workplace, steps: Steps, model: Trained, held_out: HeldOut
) -> dict[str, float]:
    """Compute with the others how much each of this party's own columns matters; for its owner."""
    plan = place.job.evaluation
    if plan is None or not plan.columns:
        return {}
    algorithm = algorithm_named(place.job.algorithm)
    party = steps(held_out.table, "columns", settings=model.settings)
    return algorithm.column_relevance(party, model.shard)


def _linear(
    place: Workplace, steps: Steps, settings: Any, rows: FitRows, fits: Sequence[Fit]
) -> tuple[Algorithm[Any, Any], Sequence[Judged]] | None:
    """Fit a linear model of all columns on the rows of these fits, if the job compares with one."""
    found = linear_of(place.job, settings)
    if found is None:
        return None
    algorithm, straight = found
    others = [replace(fit, settings=straight) for fit in fits]
    judged = judge_fits(place, steps, "linear", algorithm, others, rows)
    return None if judged is None else (algorithm, judged)


def _measured_parts(
    found: tuple[Algorithm[Any, Any], Sequence[Judged]] | None,
    classes: Sequence[str],
    targets: Sequence[Array],
) -> Measures | None:
    """Measure the predictions of several fits together, each of rows of its own."""
    if found is None:
        return None
    algorithm, judged = found
    return measure_parts(
        [
            (one.reading(algorithm, classes), one.f, there)
            for one, there in zip(judged, targets, strict=True)
        ]
    )


def _shuffled(job: Job) -> tuple[str, ...]:
    """The parties whose rows are shuffled, one after the other."""
    return job.table_parties if job.evaluation and job.evaluation.contributions else ()


def _predict_all(
    place: Workplace, steps: Steps, model: Trained, table: Table
) -> list[Array] | None:
    """Take part in all predictions of the held-out rows that the leader lacks.

    Returns f (rows, outputs) of each at the leader, first as they are, then shuffled by party.
    """
    job, settings, shard = place.job, model.settings, model.shard
    algorithm = algorithm_named(job.algorithm)
    permutation = np.random.default_rng(settings.seed).permutation(table.rows)
    passes = ("", *_shuffled(job))
    party = steps(table, "evaluate", settings=settings)
    memory = _Kept(place.checkpoints, algorithm, shard) if party.leads else None
    found = [memory.read(number) if memory else None for number in range(len(passes))]
    lacking = [number for number, f in enumerate(found) if f is None]
    for number in agree_on_lacking(party, lacking, len(passes)):
        if algorithm.exposure(settings).prediction_bits:
            count_prediction(place, str(number))
        own = table
        if passes[number] == place.me:
            own = Table(table.party, table.columns, table.block(permutation))
        values = algorithm.predict(steps(own, f"evaluate {number}", settings=settings), shard)
        if memory is not None:
            if values is None:
                raise InputError(f"{place.me} leads and was told no predictions of held-out rows")
            memory.write(number, values)
            found[number] = values
    return [f for f in found if f is not None] if party.leads else None


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
            place=Place(place.device),
        )

    shard = algorithm.train(party(*trained, "train"), own)
    values = algorithm.predict(party(held_out, None, "predict"), shard)
    if values is None:
        raise InputError(f"{algorithm.name} predicts nothing at one party alone")
    return values, shard
