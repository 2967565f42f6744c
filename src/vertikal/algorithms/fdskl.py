"""FDSKL: federated doubly stochastic kernel learning (Gu, Dang, Li, Huang, KDD 2020).

`train` and `predict` are the programs; every party runs them. Where the paper sums phases in each
iteration, they are summed once for all rows (`phases`), since they never change; the iterations of
Algorithm 1 then run at the label parties, and only partial predictions travel between these.

Coefficients are those of features φ/√D, whose inner products approximate the kernel; the paper's
α_i is a coefficient here divided by √D.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from vertikal.algorithms.bandwidth import agree_on_bandwidth
from vertikal.algorithms.hidden import HiddenPass, hidden_predictions
from vertikal.algorithms.landmarks import keep_landmarks, whiten
from vertikal.algorithms.phases import PhasePass
from vertikal.algorithms.sealed import sealed_predictions, train_square
from vertikal.algorithms.settings import FdsklSettings
from vertikal.algorithms.shard import Shard, Training
from vertikal.data.prepare import learn_scaling
from vertikal.errors import InputError
from vertikal.losses.pointwise import loss_named
from vertikal.party import Labels, Party
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.ring import Ring
from vertikal.solvers.exact import (
    Problem,
    Solution,
    Sums,
    automatic_penalty,
    best_constants,
    sample_rows,
    solve,
)
from vertikal.solvers.expansion import Expansion
from vertikal.solvers.operator import FeatureOperator
from vertikal.solvers.whitened import WhitenedOperator

Array = npt.NDArray[Any]

PARTIAL = Disclosure(
    "partial predictions",
    "partial predictions of the label parties, summed",
    "label parties learn predictions on the rows at hand; with two of them, each the other's part",
    masked=True,
)
PRODUCTS = Disclosure(
    "inner products",
    "inner products of the label parties' coefficients, summed",
    "label parties learn lengths and angles of whole coefficient vectors, not of any one's part",
    masked=True,
)
ROWS = Disclosure(
    "batches", "row numbers of a batch", "label parties learn which rows a step uses", masked=False
)

_FRACTION = 36
_ROUNDING = 1e-7
_DIVERGED = 1e6


def train(party: Party, settings: FdsklSettings) -> Shard:
    """The training program: returns this party's shard."""
    with party.clock.stage("prepare"):
        scaling = learn_scaling(party.table, settings.scale)
    with party.clock.stage("bandwidth"):
        bandwidth = agree_on_bandwidth(party, settings, scaling)
    rows = party.table.rows
    shard = Shard(
        party.name, settings, party.table.columns, scaling, bandwidth, party.secret("model")
    )
    if settings.hides:
        settings.check_memory(rows)
    if settings.seals:
        own = party.labels
        if own is not None:
            shard, own = _standardised(shard, own)
        return train_square(party, shard, own)
    shard = keep_landmarks(party, shard)
    kept = settings.cached_rows(rows)
    serving = settings.hides or kept < rows
    with party.clock.stage("phases", rows):
        factor = whiten(party, shard)
        phases = HiddenPass(party, shard) if settings.hides else PhasePass(party, shard)
        operator: FeatureOperator | None = phases.gather(rows, kept)
    if operator is not None and factor is not None:
        operator = WhitenedOperator(operator, factor.matrix, factor.gram)
    if operator is None or party.labels is None:
        if serving:
            with party.clock.stage("serve"):
                phases.serve()
        return shard
    with party.clock.stage("solve"):
        sums = LabelSums(party, settings)
        shard, labels = _standardised(shard, party.labels)
        learn = _train_exact if settings.solver == "exact" else _train_dsg
        shard = learn(party, shard, operator, labels, sums)
        if isinstance(operator, WhitenedOperator) and shard.coefficients is not None:
            shard = replace(shard, coefficients=operator.spread(shard.coefficients))
        if serving:
            phases.finish()
    return shard


def predict(party: Party, shard: Shard) -> Array | None:
    """The prediction program: f of all rows of ``party.table`` at the leader, None elsewhere."""
    rows = party.table.rows
    predictions = np.empty((rows, shard.settings.outputs))
    sums = LabelSums(party, shard.settings)
    with party.clock.stage("predict", rows):
        ours = PREDICTIONS[shard.settings.disclosure]
        for where, partial in ours(party, shard):
            total = sums.to(party.leader, partial)
            if total is not None:
                predictions[where] = total * shard.unit + shard.constant
    return predictions if party.leads else None


def _open_predictions(party: Party, shard: Shard) -> Iterator[tuple[slice, Array]]:
    """Of a label party's own directions, block by block; the others only contribute."""
    phases = PhasePass(party, shard)
    for where, mine in phases.stream(np.arange(party.table.rows)):
        if mine is not None and shard.coefficients is not None:
            yield where, phases.own.decode(mine, np.float64) @ shard.coefficients


PREDICTIONS = {
    "open": _open_predictions,
    "values": hidden_predictions,
    "sealed": sealed_predictions,
}


def _standardised(shard: Shard, labels: Labels) -> tuple[Shard, Labels]:
    """For regression: targets of mean 0 and deviation 1, so that λ means the same for all."""
    zero = np.zeros(shard.settings.outputs)
    if not shard.settings.regression:
        return replace(shard, constant=zero), labels
    share = labels.weights / labels.weights.sum()
    mean = share @ labels.targets  # (outputs,)
    unit = np.sqrt(share @ np.square(labels.targets - mean))
    unit = np.where(unit > 0, unit, 1.0)
    scaled = Labels((labels.targets - mean) / unit, labels.weights)
    return replace(shard, constant=mean, unit=unit), scaled


class LabelSums(Sums):
    """Secure sums over the label parties; with one of them, nothing travels."""

    def __init__(self, party: Party, settings: FdsklSettings) -> None:
        self._party = party
        self._group = settings.label_parties
        self._ring = Ring(64)

    def rows(self, partial: Array) -> Array:
        if len(self._group) == 1:
            return partial
        total = self._party.sum_to_group(self._encode(partial), self._group, PARTIAL)
        return self._ring.decode_reals(total, _FRACTION)

    def scalars(self, partial: Array) -> Array:
        if len(self._group) == 1:
            return partial
        encoded = self._ring.encode_wide(partial, len(self._group))
        return self._ring.decode_wide(self._party.sum_to_group(encoded, self._group, PRODUCTS))

    def to(self, receiver: str, partial: Array) -> Array | None:
        """The sum of partial predictions at one label party only."""
        if len(self._group) == 1:
            return partial
        total = self._party.secure_sum(self._encode(partial), receiver, PARTIAL, self._group)
        return None if total is None else self._ring.decode_reals(total, _FRACTION)

    def _encode(self, partial: Array) -> Array:
        return self._ring.encode_reals(partial, _FRACTION, len(self._group))


def penalty_of(settings: FdsklSettings, labels: Labels) -> float:
    """λ, as given or automatic."""
    return automatic_penalty(labels.weights) if settings.penalty == "auto" else settings.penalty


def _train_exact(
    party: Party, shard: Shard, operator: FeatureOperator, labels: Labels, sums: Sums
) -> Shard:
    """The regularised problem, FDSKL eq. (1) on the drawn features, to tolerance."""
    settings = shard.settings
    loss = loss_named(settings.loss, regression=settings.regression)
    constant = np.zeros(settings.outputs)
    if not settings.regression:
        constant = best_constants(loss, labels.targets, labels.weights)
    problem = Problem(labels.targets, labels.weights, loss, penalty_of(settings, labels), constant)
    sample = sample_rows(operator.rows, operator.width, settings.seed)

    def report(solution: Solution) -> None:
        party.clock.advance(1, f"objective {solution.objective[-1]:.6f}")

    solution = solve(
        operator,
        problem,
        sums=sums,
        sample=sample,
        tolerance=settings.stopping(),
        max_iterations=settings.iterations(),
        report=report,
    )
    training = Training(
        solution.iterations,
        solution.passes,
        solution.converged,
        solution.objective,
        solution.gradient,
        problem.penalty,
    )
    return replace(
        shard,
        coefficients=solution.coefficients,
        constant=shard.constant + constant,
        training=training,
    )


def _train_dsg(
    party: Party, shard: Shard, operator: FeatureOperator, labels: Labels, sums: LabelSums
) -> Shard:
    """FDSKL Algorithm 1: doubly stochastic gradients, constant step, label parties in turn.

    Also VFKL Algorithm 1. A step is FDSKL eq. (7): the gradient of one feature, FDSKL eq. (4),
    times the loss, FDSKL eq. (5), plus λf, FDSKL eq. (6); here for batches of rows and of features.
    """
    settings = shard.settings
    loss = loss_named(settings.loss, regression=settings.regression)
    penalty = penalty_of(settings, labels)
    step = step_size_of(settings)
    if step * penalty >= 1:
        raise InputError.of("step_size", f"below 1 / penalty = {1 / penalty:g}", step)
    expansion = Expansion(operator.width, settings.outputs)
    batches = draw_batches(party, shard, labels)
    trace: list[float] = []
    for owner, columns in schedule(settings):  # line 1: keep doing, each label party in its turn
        mine = owner == party.name
        rows = next(batches) if mine else None  # line 2: pick instances
        rows = _announce(party, owner, rows)  # line 3: send their numbers to the others
        batch = operator.restricted(rows)  # lines 4 and 5: the phases, summed before
        partial = partial_prediction(batch, expansion)  # line 6, by Algorithm 2
        if not np.abs(partial).max() < _DIVERGED:
            raise InputError.of("step_size", "small enough: the predictions diverge", step)
        f = sums.to(owner, partial)  # line 7: f(x) = Σ_ℓ f^ℓ(x)
        if mine and f is not None:
            y = labels.targets[rows]
            slopes = loss.derivative(f, y) * _importance(labels, rows)
            # Lines 8 and 9: α = −γ·L'(f(x), y)·φ(x), as a mean over the batch.
            change = batch.adjoint(slopes, columns=columns) / len(rows)
            if settings.precondition:
                change = _by_covariance(batch, columns, change)
            else:
                # One of D/F blocks stands for all: F features estimate the kernel by D/F · Σ φφ.
                change *= settings.n_directions / (columns.stop - columns.start)
            trace.append(float(loss.value(f, y).mean()))
        expansion.decay(1 - step * penalty)  # line 10
        if mine:
            expansion.add(columns, -step * change)
        party.clock.advance(1, f"loss {trace[-1]:.4f}" if trace else "")
    training = Training(
        settings_steps(settings), settings_steps(settings), True, trace, [], penalty
    )
    return replace(shard, coefficients=expansion.coefficients(), training=training)


def partial_prediction(batch: FeatureOperator, expansion: Expansion) -> Array:
    """FDSKL Algorithm 2: f^ℓ(x) = Σ_{i∈Λ^ℓ} α_i φ_i(x), over this label party's directions.

    Also VFKL Algorithm 2. The phases of the batch are saved already (line 4).
    """
    return batch.forward(expansion.coefficients())


def schedule(settings: FdsklSettings) -> Iterator[tuple[str, slice]]:
    """(label party, its columns) of each step: the parties in turn, each through its own blocks.

    After its last block a party begins again with its first; by default every direction is used
    once.
    """
    turns = _turns(settings)
    for step in range(settings_steps(settings)):
        yield turns[step % len(turns)]


def _turns(settings: FdsklSettings) -> list[tuple[str, slice]]:
    """One pass: each direction once; a party whose blocks are used up sits out the last turn."""
    widths = settings.widths()
    return [
        (owner, slice(start, min(start + settings.features, width)))
        for start in range(0, max(widths.values()), settings.features)
        for owner, width in widths.items()
        if start < width
    ]


def settings_steps(settings: FdsklSettings) -> int:
    """Steps of the stochastic solver: as given, or enough for each direction once."""
    if settings.steps is not None:
        return settings.steps
    return len(_turns(settings))


def step_size_of(settings: FdsklSettings) -> float:
    """γ; ``"auto"`` is a constant that neither loss nor batch nor block size makes unstable.

    1/L'' is a full Newton step where the kernel is one; a preconditioned block takes half of it.
    """
    if settings.step_size != "auto":
        return settings.step_size
    newton = 1 / loss_named(settings.loss, regression=settings.regression).curvature_bound
    if settings.precondition:
        return newton / 2
    # Few rows and few features estimate the gradient badly: smaller steps average over them.
    return float(newton * min(1.0, np.sqrt(settings.samples * settings.features) / 64))


def draw_batches(party: Party, shard: Shard, labels: Labels) -> Iterator[Array]:
    """Row numbers of this label party's batches, drawn from its own seed."""
    for batch in count():
        key = party.derive(shard.seed, "batches", str(batch))
        words = party.words(key, (shard.settings.samples,), np.uint64)
        yield (words % np.uint64(len(labels.targets))).astype(np.int64)


def _announce(party: Party, owner: str, rows: Array | None) -> Array:
    group = (owner, *(name for name in party.label_parties if name != owner))
    if len(group) == 1 and rows is not None:
        return rows
    return np.asarray(party.broadcast(rows, group, ROWS))


def _importance(labels: Labels, rows: Array) -> Array:
    """The weights of these rows (rows, 1), one on average over all rows."""
    return np.asarray(labels.weights[rows] * len(labels.weights) / labels.weights.sum())[:, None]


def _by_covariance(batch: FeatureOperator, columns: slice, change: Array) -> Array:
    """The block's update times the inverse of its covariance in this batch (as DSG's code)."""
    rows = np.arange(batch.rows)
    gram = batch.gram(rows, np.full(batch.rows, 1 / batch.rows), columns)
    if gram is None:
        return change
    # The fewer rows a block's covariance is estimated from, the more it is shrunk.
    shrinkage = max(0.01, 0.5 * len(gram) / batch.rows)
    ridge = max(_ROUNDING, shrinkage * float(np.trace(gram)) / len(gram))
    np.einsum("ii->i", gram)[:] += ridge
    return np.asarray(cho_solve(cho_factor(gram), change))
