"""FDSKL: federated doubly stochastic kernel learning (Gu, Dang, Li, Huang, KDD 2020).

`train` and `predict` are the programs that every party runs. `RowUpdate` is the update of
Algorithm 1; the loop around it is `stochastic.round_robin`, or `stochastic.asynchronous` where no
label party waits for another. Algorithm 2 is `Learner.partial` in `stochastic.learner`. Algorithm
3, the masked sum over two trees, is `secure.sums.fdskl_algorithm3`.

In the paper an iteration sums the phases of its row under all directions so far. They never change,
so here `features` has those of all rows summed once, by Algorithm 3 or with pads; after that only
partial predictions travel, between label parties.

Coefficients are those of features φ/√D, whose inner products approximate the kernel; the paper's
α_i is a coefficient here divided by √D.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import WITHOUT_DEALER, Fit, Fitted, JobSettings
from vertikal.algorithms.kernel_machine.features import (
    Learn,
    begin_shard,
    learn_on_features,
    learn_several_on_features,
    own_encoding,
)
from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.labels.parts import (
    LabelParts,
    share_labels,
    shares_of_steps,
)
from vertikal.algorithms.kernel_machine.labels.parts_objective import PartsObjective
from vertikal.algorithms.kernel_machine.phases import PhasePass
from vertikal.algorithms.kernel_machine.sealed import sealed_predictions, train_square
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard, Training
from vertikal.algorithms.kernel_machine.stochastic.learner import UpdateRule, direction_blocks
from vertikal.algorithms.kernel_machine.stochastic.solver import learn_stochastically
from vertikal.algorithms.kernel_machine.values import hidden_predictions
from vertikal.losses.pointwise import Loss, loss_named
from vertikal.party.party import Labels, Party
from vertikal.secure.keys.prg import uniform_elements
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.lbfgs import Solution, sample_rows, solve
from vertikal.solvers.objective import (
    Objective,
    RowObjective,
    automatic_penalty,
    constants_of,
)

Array = npt.NDArray[Any]


def train(party: Party, settings: FdsklSettings) -> Shard:
    """Train at this party and return its shard."""
    with party.encoded(own_encoding(party, settings)):
        return _train(party, settings)


def _train(party: Party, settings: FdsklSettings) -> Shard:
    if settings.seals:
        return _train_sealed(party, settings)
    parts = _shared_labels(party, settings)
    return learn_on_features(party, settings, _learner(party, parts, settings))


def _shared_labels(party: Party, settings: FdsklSettings) -> LabelParts | None:
    """Compare labels with the other label parties; None at a party without labels."""
    if party.labels is None:
        return None
    return share_labels(party, party.labels, parts=settings.label_parts)


def _learner(party: Party, parts: LabelParts | None, settings: FdsklSettings) -> Learn:
    """Return what learns on features by these settings."""

    def learn(shard: Shard, operator: FeatureOperator, labels: Labels) -> Shard:
        shard, shared = _standardised(shard, parts or LabelParts(labels))
        by = _train_exact if settings.solver == "exact" else _train_stochastically
        return by(party, shard, operator, shared)

    return learn


def train_several(party: Party, fits: Sequence[Fit]) -> list[Fitted]:
    """Train several times on the same features, which all of the fits' settings describe alike."""
    with party.encoded(own_encoding(party, fits[0].settings)):
        _shared_labels(party, fits[0].settings)
        return learn_several_on_features(party, fits, partial(_learner, party, None))


def _train_sealed(party: Party, settings: FdsklSettings) -> Shard:
    """Fit the square loss on shares: nobody sees a feature, a prediction or a coefficient."""
    shard, labels = begin_shard(party, settings), party.labels
    if labels is not None:
        shard, parts = _standardised(shard, LabelParts(labels))
        labels = parts.labels
    return train_square(party, shard, labels)


def predict(party: Party, shard: Shard) -> Array | None:
    """Predict at this party: f of all rows of ``party.table`` at the leader, None elsewhere.

    A label party that vanished in training has no coefficients; it contributes its columns only.
    """
    rows = party.table.rows
    predictions = np.empty((rows, shard.settings.outputs))
    missing = shard.training.missing
    group = tuple(name for name in shard.settings.label_parties if name not in missing)
    sums = LabelSums(party, group)
    with party.encoded(shard.encoding), party.clock.stage("predict", rows):
        ours = PREDICTIONS[shard.settings.level]
        for where, part in ours(party, shard):
            total = sums.to(group[0], part)
            if total is not None:
                predictions[where] = total * shard.unit + shard.constant
    return predictions if party.name == group[0] and shard.learned else None


def _open_predictions(party: Party, shard: Shard) -> Iterator[tuple[slice, Array]]:
    """Yield (rows, partial predictions) block by block at label parties; others contribute."""
    phases = PhasePass(party, shard)
    # Where each phase gives several features, fewer rows are decoded at a time.
    height = max(1, phases.height // shard.settings.per_phase)
    for where, mine in phases.stream(range(party.table.rows)):
        if mine is None or shard.coefficients is None:
            continue
        parts = [mine[start : start + height] for start in range(0, len(mine), height)]
        decoded = (phases.own.decode(part, np.float64) for part in parts)
        yield where, np.concatenate([features @ shard.coefficients for features in decoded])


PREDICTIONS = {
    "open": _open_predictions,
    "values": hidden_predictions,
    WITHOUT_DEALER: hidden_predictions,
    "sealed": sealed_predictions,
}


def _standardised(shard: Shard, parts: LabelParts) -> tuple[Shard, LabelParts]:
    constant, unit, labels = standardise(shard.settings, parts)
    shard = replace(shard, constant=constant)
    shard = replace(shard, unit=unit) if shard.settings.regression else shard
    return shard, parts.with_labels(labels)


def standardise(settings: JobSettings, parts: LabelParts) -> tuple[Array, Array, Labels]:
    """Bring targets of a regression to mean 0 and deviation 1, so that λ means the same for all.

    Returns mean and deviation of each output beside the labels; of classes, 0 and 1.
    """
    labels = parts.labels
    zero, one = np.zeros(settings.outputs), np.ones(settings.outputs)
    if not settings.regression:
        return zero, one, labels
    share = labels.weights / parts.mass()
    mean = parts.total(share @ labels.targets)  # (outputs,)
    unit = np.sqrt(parts.total(share @ np.square(labels.targets - mean)))
    unit = np.where(unit > 0, unit, 1.0)
    return mean, unit, replace(labels, targets=(labels.targets - mean) / unit)


def penalty_of(settings: FdsklSettings, parts: LabelParts) -> float:
    """Return λ, as given or automatic."""
    if settings.alpha != "auto":
        return settings.alpha
    return automatic_penalty(np.array([parts.mass()]))


def _train_exact(party: Party, shard: Shard, operator: FeatureOperator, parts: LabelParts) -> Shard:
    """Solve the regularised problem, FDSKL eq. (1) on the drawn features, to tolerance."""
    settings, labels = shard.settings, parts.labels
    loss = loss_named(settings.loss, regression=settings.regression)
    constant = np.zeros(settings.outputs)
    if not settings.regression:
        positive = parts.total(labels.weights @ (labels.targets > 0))
        constant = constants_of(loss, positive / parts.mass())
    penalty = penalty_of(settings, parts)
    objective: Objective = RowObjective(labels.targets, labels.weights, loss, penalty, constant)
    if parts.several:
        objective = PartsObjective(objective, parts, float(labels.weights.sum()) / parts.mass())
    solution = solve_exactly(party, shard, operator, objective)
    return replace(
        shard,
        coefficients=solution.coefficients,
        constant=shard.constant + constant,
        training=training_of(solution, penalty),
    )


def solve_exactly(
    party: Party, shard: Shard, operator: FeatureOperator, objective: Objective
) -> Solution:
    """Solve together with the other label parties, each for its own coefficients."""
    settings, most = shard.settings, shard.settings.iterations(operator.rows)
    if operator.most_forward is not None:
        most = min(most, operator.most_forward // settings.outputs)

    def report(solution: Solution) -> None:
        told = f"objective {solution.objective[-1]:.6f}, gradient {solution.gradient[-1]:.2e}"
        party.clock.advance(1, told)

    return solve(
        operator,
        objective,
        sums=LabelSums(party, settings.label_parties),
        sample=sample_rows(operator.rows, operator.width, settings.seed),
        tolerance=settings.stopping(),
        max_iterations=most,
        report=report,
    )


def training_of(solution: Solution, penalty: float) -> Training:
    """Record how the exact solver went."""
    return Training(
        solution.iterations,
        solution.passes,
        solution.converged,
        solution.objective,
        solution.gradient,
        penalty,
    )


def _train_stochastically(
    party: Party, shard: Shard, operator: FeatureOperator, parts: LabelParts
) -> Shard:
    """Take the steps of Algorithm 1, by the schedule of the settings."""
    settings = shard.settings
    loss = loss_named(settings.loss, regression=settings.regression)
    factors = step_factors(settings, parts, float(parts.labels.weights.sum()))
    update = RowUpdate(settings, parts.labels, loss, factors.get(party.name, 1.0))
    update.curvature_bound *= max(factors.values(), default=1.0)
    shard, _ = learn_stochastically(party, shard, operator, update, penalty_of(settings, parts))
    return shard


def step_factors(settings: FdsklSettings, parts: LabelParts, mass: float) -> dict[str, float]:
    """Return the factor of each label party's steps; ``mass`` is what its own labels weigh."""
    blocks = {name: len(direction_blocks(settings, name)) for name in settings.label_parties}
    return shares_of_steps(parts, blocks, mass)


class RowUpdate(UpdateRule):
    """FDSKL's update by rows x with labels y.

    It is FDSKL Algorithm 1 without its loop; i are the directions of this step, j those before:

        line 2, `draw`:             pick rows x at random, of those that this party can label
        lines 8 and 9, `gradient`:  α_i ← −γ·L'(f(x), y)·φ_i(x)
        line 10, `Learner.decay`:   α_j ← (1 − γλ)·α_j
    """

    def __init__(
        self, settings: FdsklSettings, labels: Labels, loss: Loss, factor: float = 1.0
    ) -> None:
        self.curvature_bound = loss.curvature_bound
        self._samples = settings.stochastic.batch_size
        self._labels = labels
        self._loss = loss
        rows = len(labels.weights)
        self._rows = np.arange(rows) if labels.known is None else np.flatnonzero(labels.known)
        self._importance = labels.weights * (factor * len(self._rows) / labels.weights.sum())

    def draw(self, key: bytes) -> Array:
        words = uniform_elements(key, (self._samples,), np.uint64)
        return np.asarray(self._rows[(words % np.uint64(len(self._rows))).astype(np.int64)])

    def gradient(self, batch: FeatureOperator, rows: Array, f: Array, columns: slice) -> Array:
        """Σ L'(f(x), y)·φ(x), a mean over the batch: FDSKL eq. (5), by features as FDSKL eq. (4).

        It is the loss's part of FDSKL eq. (6); the rest of that, λf, is `Learner.decay`.
        """
        return batch.adjoint(self.slopes(f, rows), columns=columns)

    def slopes(self, f: Array, rows: Array) -> Array:
        """Return L'(f(x), y) of each row, over the number of rows."""
        slopes = self._loss.derivative(f, self._labels.targets[rows])
        return np.asarray(slopes * self._importance[rows, None] / len(rows))

    def mean_loss(self, f: Array, rows: Array) -> float:
        return float(self._loss.value(f, self._labels.targets[rows]).mean())
