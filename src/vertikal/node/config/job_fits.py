"""All fits of a job: the model's own, those of folds and of a linear model, the tries of a search.

They are approved together, so what all of them may open is added up here, at the most: which tries
a round keeps is not known before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vertikal.algorithms.algorithm import Algorithm, Cost, Exposure, OpenedValues
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.node.config.job_file import Job
from vertikal.secure.hidden.openings import OpenedBits


@dataclass(frozen=True)
class FitBatch:
    """Fits that are alike in kind, of which so many are made with some of these settings."""

    what: str
    """Their kind, in words."""
    count: int
    algorithm: Algorithm[Any, Any]
    settings: tuple[Any, ...]
    rows: float = 1.0
    """Share of the rows of training."""
    of_the_model: bool = False
    """True if the model's own features serve them, where features can serve several fits."""

    @property
    def passes(self) -> int:
        """Passes over the rows for all of them: one serves all fits with the same features."""
        kinds: list[Any] = []
        for one in self.settings:
            if not self.algorithm.shares_features(one, one):
                return self.count
            if not any(self.algorithm.shares_features(other, one) for other in kinds):
                kinds.append(one)
        return 0 if self.of_the_model else min(self.count, len(kinds))


def batches_of(job: Job) -> list[FitBatch]:
    """List the fits of a job beside the model's own, in the order in which they are made."""
    algorithm = algorithm_named(job.algorithm)
    settings = tuple(job.algorithm_settings(number) for number in range(len(job.candidates)))
    found = []
    if job.search is not None:
        for planned in job.search.rounds(len(settings)):
            smaller = tuple(algorithm.smaller(each, planned.share) for each in settings)
            words = f"tries of the search on {planned.share:.0%} of rows and directions"
            share = planned.share * (1 - job.search.holdout) + job.search.holdout
            found.append(FitBatch(words, planned.tries, algorithm, smaller, share))
    plan = job.evaluation
    folds = plan.folds if plan is not None else None
    if plan is not None and folds is not None:
        words, share = "folds, each without its part of the rows", 1 - 1 / folds
        if plan.time is not None:
            words, share = "folds, each on the rows before its part", folds / (folds + 1)
        found.append(FitBatch(words, folds, algorithm, settings, share, of_the_model=True))
    straight = [one for each in settings if (one := linear_of(job, each)) is not None]
    if straight:
        words = "linear model of all columns, to compare with"
        found.append(FitBatch(words, folds or 1, straight[0][0], tuple(one for _, one in straight)))
    return found


def linear_of(job: Job, settings: Any) -> tuple[Algorithm[Any, Any], Any] | None:
    """Return the linear learner that a job compares its model with, if it does.

    Unless the job says so, it does where features are open: elsewhere it opens more values.
    """
    plan, algorithm = job.evaluation, algorithm_named(job.algorithm)
    if plan is None or plan.linear is False or (plan.linear is None and job.masking != "pads"):
        return None
    if plan.linear is None and algorithm.exposure(settings).level != "open":
        return None
    return algorithm.linear(settings)


def fits_of(job: Job) -> int:
    """Count the fits of a job."""
    return 1 + sum(batch.count for batch in batches_of(job))


def exposure_of(job: Job) -> Exposure:
    """Return the numbers by which policies bound a job, all of its fits together."""
    algorithm = algorithm_named(job.algorithm)
    own = [
        algorithm.exposure(job.algorithm_settings(number)) for number in range(len(job.candidates))
    ]
    total = _most(own)
    for batch in batches_of(job):
        each = _most(batch.algorithm.exposure(one) for one in batch.settings)
        total = replace(
            total,
            components=total.components + batch.passes * each.components,
            opened=_added(total.opened, each.opened, batch.passes),
            prediction_bits=max(total.prediction_bits, each.prediction_bits),
        )
    return total


def predictions_of_fits(job: Job) -> int:
    """Count the predictions of a row by fits beside the model's own, at most."""
    return sum(batch.count for batch in batches_of(job))


def cost_of(job: Job, rows: int, columns: int) -> Cost:
    """Estimate the price of all fits of a job on ``rows`` rows, by formula, at most."""
    algorithm = algorithm_named(job.algorithm)
    settings = [job.algorithm_settings(number) for number in range(len(job.candidates))]
    total = _dearest(algorithm.cost(one, rows, columns) for one in settings)
    for batch in batches_of(job):
        some = max(1, round(rows * batch.rows))
        each = _dearest(batch.algorithm.cost(one, some, columns) for one in batch.settings)
        total = Cost(
            {name: sent + batch.passes * each.bytes_sent[name] for name, sent in _sent(total)},
            total.rounds + batch.passes * each.rounds,
            {name: max(held, each.memory[name]) for name, held in total.memory.items()},
            total.multiplications + batch.count * each.multiplications,
        )
    return total


def _sent(cost: Cost) -> Iterable[tuple[str, int]]:
    return cost.bytes_sent.items()


def _dearest(costs: Iterable[Cost]) -> Cost:
    return max(costs, key=lambda one: (sum(one.bytes_sent.values()), one.multiplications))


def _most(exposures: Iterable[Exposure]) -> Exposure:
    """Return the most that any of these shows, number by number."""
    first, *others = exposures
    for one in others:
        first = replace(
            first,
            components=max(first.components, one.components),
            opened=tuple(map(_larger, first.opened, one.opened)),
            prediction_bits=max(first.prediction_bits, one.prediction_bits),
            experiments=tuple(dict.fromkeys([*first.experiments, *one.experiments])),
            private=first.private or one.private,
        )
    return first


def _larger(one: OpenedValues, other: OpenedValues) -> OpenedValues:
    a, b = one.at_most, other.at_most
    return OpenedValues(
        one.label_party,
        OpenedBits(
            max(a.values, b.values),
            max(a.value_bits, b.value_bits),
            max(a.gradients, b.gradients),
            max(a.gradient_bits, b.gradient_bits),
        ),
        _fewer(one.safe_passes, other.safe_passes),
        max(one.distances, other.distances),
    )


def _fewer(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def _added(
    total: Sequence[OpenedValues], each: Sequence[OpenedValues], times: int
) -> tuple[OpenedValues, ...]:
    """Add what so many fits open. Each has directions of its own, and safe passes with them."""
    found = []
    for one, other in zip(total, each, strict=True):
        a, b = one.at_most, other.at_most
        safe = None
        if one.safe_passes is not None and other.safe_passes is not None:
            safe = one.safe_passes + times * other.safe_passes
        found.append(
            OpenedValues(
                one.label_party,
                OpenedBits(
                    a.values + times * b.values,
                    max(a.value_bits, b.value_bits),
                    a.gradients + times * b.gradients,
                    max(a.gradient_bits, b.gradient_bits),
                ),
                safe,
                one.distances + times * other.distances,
            )
        )
    return tuple(found)
