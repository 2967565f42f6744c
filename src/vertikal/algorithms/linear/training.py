"""Training and prediction of the linear baselines: epochs of one loop, whatever the method.

Every party has labels and its own weights w_ℓ; f(x) = Σ_ℓ w_ℓᵀx_ℓ is a secure sum. The published
programs send partial products in the clear; here they carry pads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.labels.parts import share_labels
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.kernel_machine.stochastic.asynchronous import AsynchronousRun
from vertikal.algorithms.kernel_machine.stochastic.barrier import run_with_barrier
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import ValidationCurve
from vertikal.algorithms.linear.learner import LinearLearner
from vertikal.algorithms.linear.settings import LinearSettings
from vertikal.compute.matrix_operator import MatrixOperator
from vertikal.data.scaling import learn_scaling
from vertikal.losses.pointwise import loss_named
from vertikal.party.party import Party

Array = npt.NDArray[Any]

_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class LinearShard:
    """Weights of one party's columns; at the first party the last is the intercept."""

    party: str
    columns: tuple[str, ...]
    weights: Array  # (own columns, 1), at the leader one more
    objective: tuple[float, ...] = ()
    """Objective after each epoch, as every party computes it."""
    updates: int = 0


def train(party: Party, settings: LinearSettings) -> LinearShard:
    """Train at this party and return its shard."""
    if party.labels is None:
        raise AssertionError("every party of a linear baseline has labels")
    labels = share_labels(party, party.labels, parts=False).labels
    steps = settings.steps()
    operator = _operator(party)
    scaling = learn_scaling(party.table, None)
    seed = party.secret("batches")
    shard = Shard(party.name, steps, party.table.columns, scaling, 1.0, seed)
    learner = LinearLearner(settings, shard, operator, labels)
    sums = LabelSums(party, settings.label_parties)
    objective = []
    loss = loss_named(settings.loss, regression=settings.regression)
    share = labels.weights / labels.weights.sum()
    with party.clock.stage("solve", settings.epochs * settings.epoch_steps):
        for _ in range(settings.epochs):
            if settings.snapshots:
                learner.take_snapshot(sums.rows(operator.forward(learner.coefficients())))
            # The loops count the steps of one epoch.
            learner.total = 0
            curve = ValidationCurve(steps, _NO_ROWS, np.zeros(operator.rows, bool))
            if settings.schedule == "barrier" or len(settings.parties) == 1:
                run_with_barrier(party, learner, sums, curve)
            else:
                run = AsynchronousRun(party, learner, curve)
                run.run()
                run.close(_NO_ROWS)
            w = learner.coefficients()
            f = sums.rows(operator.forward(w))
            norms = sums.scalars(np.array([float(np.square(w).sum())]))
            value = float((share @ loss.value(f, labels.targets)).sum())
            objective.append(value + settings.alpha / 2 * float(norms[0]))
    return LinearShard(
        party.name, party.table.columns, learner.coefficients(), tuple(objective), learner.made
    )


def predict(party: Party, shard: LinearShard) -> Array | None:
    """Predict at this party: f of all rows of ``party.table`` at the leader, None elsewhere."""
    sums = LabelSums(party, party.label_parties)
    return sums.to(party.leader, _operator(party).forward(shard.weights))


def _operator(party: Party) -> MatrixOperator:
    return MatrixOperator(party.table.block(slice(0, party.table.rows)), intercept=party.leads)
