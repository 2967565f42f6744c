"""The parts of the common rows: held out, of a fold, judging a search, or for training alone.

The first label party, the leader, chooses the parts and tells the others; all compare a digest of
them before they train. Later runs of a job must have the same: what was opened is counted on them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.data.labels import read_labels
from vertikal.data.row_split import (
    cut_groups,
    cut_rows,
    cut_times,
    hold_out,
    read_groups,
    read_times,
)
from vertikal.errors import AgreementError, InputError, PeerVisibleError
from vertikal.node.config.evaluation_plan import HELD_OUT, EvaluationPlan
from vertikal.node.runs.checkpoint_folder import SPLIT, CheckpointFolder
from vertikal.node.runs.workplaces import UsedTable, Workplace
from vertikal.party.party import Party
from vertikal.secure.keys.prg import derive_key

Array = npt.NDArray[Any]

TRAINED, HELD, JUDGING = 0, 1, 2
"""Numbers of parts without folds; the folds are numbered from 1 on. By time, 0 is before them."""


@dataclass(frozen=True)
class RowParts:
    """The part of each common row, and a digest that all parties must share."""

    numbers: Array  # (rows,) uint8
    digest: str
    folds: int | None = None
    by_time: bool = False

    @property
    def held(self) -> Array:
        """Rows that are held out of training, (rows,) bool; folds hold out none of the model."""
        return np.asarray((self.numbers == HELD) & (self.folds is None))


def parts_rows(place: Workplace) -> bool:
    """Return True if the job needs its rows parted."""
    return place.job.evaluation is not None or place.job.search is not None


def choose_parts(place: Workplace, rows: Array) -> Array:
    """Choose at the leader the part of each of these rows of its table: (rows,) uint8.

    The choice is drawn from the party's secret of the job, so that all runs of it have the same.
    """
    if place.table is None or not parts_rows(place):
        raise InputError.of("evaluation", "asked for at a party with a table", place.me)
    plan, search = place.job.evaluation, place.job.search
    numbers = np.zeros(len(rows), np.uint8)
    if plan is not None and plan.folds is not None:
        numbers += _folds(place, place.table, plan, rows)
    elif plan is not None:
        held = _drawn(place, place.table, rows, plan.holdout, "held-out rows")
        numbers[held] = HELD
    if search is not None:
        rest = np.flatnonzero(numbers == TRAINED)
        judging = _drawn(place, place.table, rows[rest], search.holdout, "judging rows")
        numbers[rest[judging]] = JUDGING
    return numbers


def _drawn(place: Workplace, table: UsedTable, rows: Array, share: float, purpose: str) -> Array:
    """Hold out a share of these rows, in the way of the evaluation."""
    plan = place.job.evaluation or EvaluationPlan()
    generator = _generator(place, purpose)
    return hold_out(table.source, rows, share, generator, group=plan.group, time=plan.time)


def _folds(place: Workplace, table: UsedTable, plan: EvaluationPlan, rows: Array) -> Array:
    """Number the fold of each row from 1 on; classes are spread evenly, groups stay together.

    By time the folds follow one another, and the first rows of all are of none: 0.
    """
    folds, generator = plan.folds or 1, _generator(place, "folds")
    if plan.time is not None:
        return cut_times(read_times(table.source, plan.time, rows), folds).astype(np.uint8)
    if plan.group is not None:
        found = cut_groups(read_groups(table.source, plan.group, rows), folds, generator)
        return (1 + found).astype(np.uint8)
    labels, kinds = place.job.label_plan(place.me), np.zeros(len(rows))
    if labels is not None and not labels.regression:
        targets = read_labels(table.source, labels, rows).targets
        kinds = targets @ np.arange(1, targets.shape[1] + 1)
    return (1 + cut_rows(kinds, folds, generator)).astype(np.uint8)


def _generator(place: Workplace, purpose: str) -> np.random.Generator:
    seed = int.from_bytes(derive_key(place.secret, purpose)[:8], "big")
    return np.random.default_rng(seed)


def agree_on_parts(party: Party, place: Workplace, rows: Array) -> RowParts:
    """Return the part of each row, as the leader has chosen it.

    All parties compare the digest before they train: a leader that told each of them other rows
    would join one person's columns with another's. A dealer without data learns the digest and how
    many rows each part has, and gets as many.
    """
    job = place.job
    plan = job.evaluation
    folds = plan.folds if plan is not None else None
    if party.leads:
        numbers = choose_parts(place, rows)
        agreed = _digest(numbers)
        counts = {"parts": np.bincount(numbers).tolist(), "digest": agreed}
        for name in party.parties:
            if name != party.name:
                party.tell(name, numbers if name in job.table_parties else counts, HELD_OUT)
    else:
        numbers, agreed = _told(party, len(rows), bare=place.table is None)
    _check(party, place, numbers)
    _keep(place.checkpoints, numbers)
    return RowParts(numbers, agreed, folds, plan is not None and plan.time is not None)


def _digest(numbers: Array) -> str:
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def _told(party: Party, rows: int, *, bare: bool) -> tuple[Array, str]:
    """Hear from the leader which part each row is of; a dealer hears how many there are of each."""
    told: Any = party.hear(party.leader, HELD_OUT)
    if bare and isinstance(told, dict) and isinstance(counts := told.get("parts"), list):
        if len(counts) <= 255 and all(type(one) is int and 0 <= one <= rows for one in counts):
            numbers = np.repeat(np.arange(len(counts)), counts).astype(np.uint8)
            if len(numbers) == rows:
                return numbers, str(told.get("digest"))
    elif (
        not bare
        and isinstance(told, np.ndarray)
        and told.dtype == np.uint8
        and told.shape == (rows,)
    ):
        return told, _digest(told)
    raise AgreementError(f"{party.name}: {party.leader} tells of no rows to hold out")


def _check(party: Party, place: Workplace, numbers: Array) -> None:
    """Refuse parts that the job does not have, or that leave one of its parts without rows."""
    plan = place.job.evaluation
    wanted = {TRAINED}
    if plan is not None:
        first = TRAINED if plan.time is not None else TRAINED + 1
        wanted = {TRAINED, HELD} if plan.folds is None else set(range(first, plan.folds + 1))
    if place.job.search is not None:
        wanted.add(JUDGING)
    if set(numbers.tolist()) != wanted:
        raise AgreementError(
            f"{party.name}: {party.leader} parts {len(numbers)} rows into "
            f"{np.bincount(numbers).tolist()}, which leaves none for a part that the job has, or "
            "has a part more"
        )


def _keep(kept: CheckpointFolder | None, numbers: Array) -> None:
    if kept is None:
        return
    now, known = numbers.tobytes(), kept.read(SPLIT)
    if known is not None and known != now:
        raise PeerVisibleError(
            "the held-out rows are not those of an earlier run of this job; submit the job again"
        )
    kept.write(SPLIT, now)
