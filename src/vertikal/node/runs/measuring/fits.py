"""Fits beside the model's own, and their predictions of rows that they were not trained on.

A fit is a run of the job's program with directions of its own, unless several can share features.
The leader keeps the predictions of each, so that a run that is taken up again makes only the fits
that it lacks; what a fit opens is counted at every party over all runs of the job.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Algorithm, Fit
from vertikal.data.tables import Table
from vertikal.errors import AgreementError, InputError, PeerVisibleError
from vertikal.node.config.evaluation_plan import TO_PREDICT, TRIES
from vertikal.node.models.score_reading import ScoreReading
from vertikal.node.runs.workplaces import Workplace
from vertikal.party.checkpoints import OPENED
from vertikal.party.party import Labels, Party

Array = npt.NDArray[Any]

_COUNTED = f"{OPENED}-evaluation"
_HEAD = struct.Struct("<32sdI")


class Steps(Protocol):
    """Makes this party for one step of a run.

    A ``fit`` has a secret of its own, so that its directions are, and its own checkpoints.
    """

    def __call__(
        self,
        table: Table,
        step: str,
        *,
        labels: Labels | None = None,
        settings: Any = None,
        fit: bool = False,
    ) -> Party: ...


@dataclass(frozen=True)
class Judged:
    """Predictions f (rows, outputs) of one fit of rows it was not trained on."""

    settings: Any
    threshold: float
    f: Array

    def reading(self, algorithm: Algorithm[Any, Any], classes: Sequence[str]) -> ScoreReading:
        """Make the reading of these predictions."""
        known = () if self.settings.regression else tuple(classes)
        return ScoreReading(algorithm, self.settings, known, self.threshold)


@dataclass(frozen=True)
class FitRows:
    """Rows of several fits: a table, its labels at a label party, and other rows to predict.

    Without ``others`` each fit predicts the rows of the table that it holds out.
    """

    table: Table
    labels: Labels | None
    others: Table | None = None

    def trained(self, fit: Fit) -> tuple[Table, Labels | None]:
        """Cut out the rows that a fit is trained on."""
        if fit.trained.all():
            return self.table, self.labels
        rows = np.flatnonzero(fit.trained)
        return some_rows(self.table, rows), None if self.labels is None else self.labels.some(rows)

    def predicted(self, fit: Fit) -> Table:
        """Cut out the rows that a fit predicts."""
        if self.others is not None:
            return self.others
        return some_rows(self.table, np.flatnonzero(fit.predicted))


def some_rows(table: Table, rows: Array) -> Table:
    """Return a table of some of its rows."""
    return Table(table.party, table.columns, table.block(rows))


def judge_fits(
    place: Workplace,
    steps: Steps,
    name: str,
    algorithm: Algorithm[Any, Any],
    fits: Sequence[Fit],
    rows: FitRows,
) -> list[Judged] | None:
    """Make all fits that the leader lacks; return the predictions of all at the leader, else None.

    ``name`` tells these fits of a job from others; it becomes part of the names of files.
    """
    groups = _groups(algorithm, fits, alone=rows.others is not None)
    begun = steps(rows.table, name, settings=fits[0].settings)
    memory = _Memory(place, name, fits)
    found = [memory.read(number) if begun.leads else None for number in range(len(fits))]
    lacking = [
        number for number, group in enumerate(groups) if any(found[one] is None for one in group)
    ]
    for number in agree_on_lacking(begun, lacking, len(groups)):
        group, step = groups[number], f"{name}-{number}"
        judged = _judge(place, steps, step, algorithm, [fits[one] for one in group], rows)
        if judged is not None:
            for one, got in zip(group, judged, strict=True):
                found[one] = got
                memory.write(one, got)
        if place.checkpoints is not None:
            place.checkpoints.forget_part(step)
    return [one for one in found if one is not None] if begun.leads else None


def _groups(algorithm: Algorithm[Any, Any], fits: Sequence[Fit], *, alone: bool) -> list[list[int]]:
    """Put fits together that share features; ``alone`` keeps all apart."""
    groups: list[list[int]] = []
    for number, fit in enumerate(fits):
        for group in () if alone else groups:
            if algorithm.shares_features(fits[group[0]].settings, fit.settings):
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def _judge(
    place: Workplace,
    steps: Steps,
    step: str,
    algorithm: Algorithm[Any, Any],
    fits: Sequence[Fit],
    rows: FitRows,
) -> list[Judged] | None:
    """Make the fits of one group; return their predictions at the leader, else None."""
    settings = fits[0].settings
    if rows.others is None and algorithm.shares_features(settings, settings):
        party = steps(rows.table, step, labels=rows.labels, settings=settings, fit=True)
        fitted = algorithm.fit_several(party, fits)
        return judged_of(algorithm, fits, fitted) if party.leads else None
    (fit,) = fits
    table, labels = rows.trained(fit)
    party = steps(table, step, labels=labels, settings=settings, fit=True)
    shard = algorithm.train(party, settings)
    if algorithm.exposure(settings).prediction_bits:
        count_prediction(place, step)
    there = steps(rows.predicted(fit), f"{step}-predicted", settings=settings)
    f = algorithm.predict(there, shard)
    if not there.leads:
        return None
    if f is None:
        raise InputError(f"{place.me} leads and was told no predictions of held-out rows")
    return [Judged(settings, algorithm.threshold(shard), f)]


def judged_of(
    algorithm: Algorithm[Any, Any], fits: Sequence[Fit], fitted: Sequence[Any]
) -> list[Judged]:
    """Collect what fits on shared features tell the leader."""
    return [
        Judged(fit.settings, algorithm.threshold(one.shard), one.held_out)
        for fit, one in zip(fits, fitted, strict=True)
        if one.held_out is not None
    ]


def agree_on_lacking(party: Party, lacking: list[int], most: int) -> list[int]:
    """Return the numbers, each below ``most``, of what the leader lacks."""
    if party.leads:
        for name in party.parties:
            if name != party.name:
                party.tell(name, {"lacking": lacking}, TO_PREDICT)
        return lacking
    message: Any = party.hear(party.leader, TO_PREDICT)
    told = message.get("lacking") if isinstance(message, dict) else None
    if (
        not isinstance(told, list)
        or any(type(one) is not int or not 0 <= one < most for one in told)
        or len(set(told)) < len(told)
    ):
        raise AgreementError(f"{party.name}: {party.leader} tells of no predictions to make")
    return told


def count_prediction(place: Workplace, what: str) -> None:
    """Write down that held-out rows are about to be predicted; refuse more than was agreed."""
    kept, name = place.checkpoints, f"{_COUNTED}-{what}"
    if kept is None:
        return
    if len(kept.entries(name)) >= TRIES:
        raise PeerVisibleError(
            f"{place.me} has predicted the held-out rows of this job {TRIES} times, in runs that "
            "were broken off, and does not again; submit the job again"
        )
    kept.append(name, place.run.encode(), durable=True)


class _Memory:
    """Predictions of fits that the leader has from earlier runs of the job."""

    def __init__(self, place: Workplace, name: str, fits: Sequence[Fit]) -> None:
        self._kept, self._name, self._fits = place.checkpoints, name, fits

    def _mark(self, number: int) -> bytes:
        """Compute the digest of a fit's settings and rows."""
        fit = self._fits[number]
        content = msgspec.json.encode(fit.settings, order="sorted")
        masks = fit.trained.tobytes() + fit.predicted.tobytes()
        return hashlib.sha256(content + masks).digest()

    def read(self, number: int) -> Judged | None:
        raw = None if self._kept is None else self._kept.read(f"judged-{self._name}-{number}")
        if raw is None:
            return None
        mark, threshold, outputs = _HEAD.unpack_from(raw)
        if mark != self._mark(number):
            return None
        f = np.frombuffer(raw[_HEAD.size :], np.float64).reshape(-1, outputs)
        return Judged(self._fits[number].settings, threshold, f)

    def write(self, number: int, one: Judged) -> None:
        if self._kept is not None:
            head = _HEAD.pack(self._mark(number), one.threshold, one.f.shape[1])
            self._kept.write(
                f"judged-{self._name}-{number}", head + one.f.astype(np.float64).tobytes()
            )
