"""AVFKAM: asynchronous vertical federated kernelised AUC maximisation (Zhang et al., KDD 2024).

`train` is the program that every party runs. AVFKAM's own part is here: `PairUpdate`, the update of
the coefficients by pairs of rows; the problem over all pairs for the exact solver; and the
calibration. A pairwise loss knows no threshold, so part of the rows is held out of the training,
and on these f is turned into log-odds.

The loop of Algorithm 1 around the update is in `stochastic.asynchronous`; in `stochastic.barrier`
it is VFKAM, the synchronous twin, and with one label party TSAM.
Algorithm 2 is `Learner.partial` in `stochastic.learner`, Algorithm 3 (Appendix C) is
`features.learn_on_features`. Prediction is FDSKL's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Fit, Fitted
from vertikal.algorithms.kernel_machine.fdskl import (
    predict,
    solve_exactly,
    step_factors,
    training_of,
)
from vertikal.algorithms.kernel_machine.features import (
    Learn,
    begin_shard,
    learn_on_features,
    learn_several_on_features,
    own_encoding,
)
from vertikal.algorithms.kernel_machine.labels.parts import LabelParts, share_labels
from vertikal.algorithms.kernel_machine.labels.parts_objective import PartsObjective
from vertikal.algorithms.kernel_machine.sealed import train_sealed
from vertikal.algorithms.kernel_machine.sealed_residuals import PairwiseSquareResiduals
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.kernel_machine.stochastic.learner import UpdateRule
from vertikal.algorithms.kernel_machine.stochastic.round_robin import ROWS
from vertikal.algorithms.kernel_machine.stochastic.solver import learn_stochastically
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import (
    MOST_ROWS,
    ValidationCurve,
)
from vertikal.errors import InputError
from vertikal.losses.pairwise import PairLoss, pair_loss_named
from vertikal.party.party import Labels, Party
from vertikal.secure.keys.prg import uniform_elements
from vertikal.solvers.calibration import fit_log_odds, threshold_of
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.objective import Objective
from vertikal.solvers.pair_objective import PairObjective

__all__ = ["predict", "train", "train_several"]

Array = npt.NDArray[Any]

FEWEST_HELD = 10
"""Rows of each class that must be held out; with fewer, f is calibrated on the training rows."""


def train(party: Party, settings: AvfkamSettings) -> Shard:
    """Train at this party and return its shard."""
    with party.encoded(own_encoding(party, settings)):
        return _train(party, settings)


def _train(party: Party, settings: AvfkamSettings) -> Shard:
    if settings.seals:
        return _train_sealed(party, settings)
    shared = _shared_labels(party, settings)
    return learn_on_features(party, settings, _learner(party, shared, settings))


def _shared_labels(party: Party, settings: AvfkamSettings) -> LabelParts | None:
    """Compare labels with the other label parties; None at a party without labels."""
    if party.labels is None:
        return None
    check_classes(party.name, party.labels)
    return share_labels(party, party.labels, parts=settings.label_parts)


def _learner(party: Party, shared: LabelParts | None, settings: AvfkamSettings) -> Learn:
    """Return what learns on features by these settings."""

    def learn(shard: Shard, operator: FeatureOperator, labels: Labels) -> Shard:
        parts = shared or LabelParts(labels)
        held = held_out_of_parts(party, parts, settings)
        weights = np.where(held, 0.0, parts.labels.weights)
        kept = parts.with_labels(replace(parts.labels, weights=weights))
        by = _train_exact if settings.solver == "exact" else _train_stochastically
        return by(party, shard, settings, operator, parts.labels, kept)

    return learn


def train_several(party: Party, fits: Sequence[Fit]) -> list[Fitted]:
    """Train several times on the same features, which all of the fits' settings describe alike."""
    with party.encoded(own_encoding(party, fits[0].settings)):
        _shared_labels(party, fits[0].settings)
        return learn_several_on_features(party, fits, partial(_learner, party, None))


def _train_sealed(party: Party, settings: AvfkamSettings) -> Shard:
    """Fit the pairwise square loss on shares; nothing is opened, so nothing is calibrated."""
    labels = party.labels
    if labels is not None:
        check_classes(party.name, labels)
        if np.ptp(labels.weights):
            raise InputError.of(
                "sample_weight", "the same for all rows with disclosure='sealed'", "unequal weights"
            )
    return train_sealed(party, begin_shard(party, settings), labels, PairwiseSquareResiduals)


def check_classes(party: str, labels: Labels) -> None:
    """Refuse labels that make no pairs."""
    targets = labels.targets if labels.known is None else labels.targets[labels.known]
    if targets.shape[1] != 1 or not np.isin(targets, (-1.0, 1.0)).all():
        raise InputError(f"{party}: labels must be binary for a pairwise loss")
    for sign, words in ((1.0, "positive"), (-1.0, "negative")):
        if not ((labels.targets[:, 0] == sign) & (labels.weights > 0)).any():
            raise InputError(
                f"{party}: labels must hold rows of both classes, got no {words} ones; the AUC is "
                "made of pairs"
            )


def held_out(labels: Labels, settings: AvfkamSettings) -> Array:
    """Choose rows that training leaves out, (rows,) bool: the same share of either class.

    They are drawn by the public seed, so that all label parties leave out the same ones. None are
    left out if one class would have fewer than `FEWEST_HELD` of them, too few to calibrate on.
    """
    generator = np.random.default_rng(settings.seed)
    held = np.zeros(len(labels.weights), bool)
    for sign in (1.0, -1.0):
        rows = np.flatnonzero((labels.targets[:, 0] == sign) & (labels.weights > 0))
        count = int(settings.validation * len(rows))
        if count < FEWEST_HELD:
            return np.zeros_like(held)
        held[generator.choice(rows, count, replace=False)] = True
    return held


def held_out_of_parts(party: Party, parts: LabelParts, settings: AvfkamSettings) -> Array:
    """Choose rows that training leaves out, (rows,) bool, also where labels are in parts.

    A row of two parts must be left out of both, so there it is chosen by the public seed whatever
    its class, and the leader says if its own part has enough of either class to calibrate on.
    """
    if not parts.several:
        return held_out(parts.labels, settings)
    labels = parts.labels
    held = np.random.default_rng(settings.seed).random(len(labels.weights)) < settings.validation
    enough = 0.0
    if party.leads:
        counts = [
            (held & (labels.targets[:, 0] == sign) & (labels.weights > 0)).sum()
            for sign in (1.0, -1.0)
        ]
        enough = float(min(counts) >= FEWEST_HELD)
    return held if parts.total(np.array([enough]))[0] else np.zeros_like(held)


def class_masses(labels: Labels) -> Array:
    """Return the weights of the positive and of the negative rows, (2,)."""
    positive = labels.targets[:, 0] > 0
    return np.array([labels.weights[positive].sum(), labels.weights[~positive].sum()])


def penalty_of(settings: AvfkamSettings, parts: LabelParts, loss: PairLoss) -> float:
    """Return λ: as given, or half the loss's curvature over the weight of the smaller class."""
    if settings.alpha != "auto":
        return settings.alpha
    return loss.curvature_bound / 2 / float(parts.total(class_masses(parts.labels)).min())


def _train_exact(
    party: Party,
    shard: Shard,
    settings: AvfkamSettings,
    operator: FeatureOperator,
    labels: Labels,
    kept: LabelParts,
) -> Shard:
    """Solve AVFKAM's problem on the drawn features, over all pairs, to tolerance.

    Where labels are in parts, the pairs are those that one label party can make of its own rows.
    """
    loss = pair_loss_named(settings.loss)
    positive = labels.targets[:, 0] > 0
    own = PairObjective(
        positive, kept.labels.weights, loss, penalty_of(settings, kept, loss), seed=settings.seed
    )
    objective: Objective = own
    if kept.several:
        mass = np.array([class_masses(kept.labels).prod()])
        objective = PartsObjective(own, kept, float(mass[0] / kept.total(mass)[0]))
    solution = solve_exactly(party, shard, operator, objective)
    training = replace(training_of(solution, objective.penalty), pairs=own.said)
    shard = replace(shard, coefficients=solution.coefficients, training=training)
    rows = rows_to_calibrate(labels, kept.labels)
    return _calibrated(shard, settings, solution.predictions[rows, 0], rows, labels)


def _train_stochastically(
    party: Party,
    shard: Shard,
    settings: AvfkamSettings,
    operator: FeatureOperator,
    labels: Labels,
    kept: LabelParts,
) -> Shard:
    """Take the steps of Algorithm 1, by the schedule of the settings; the leader calibrates f."""
    loss = pair_loss_named(settings.loss)
    factors = step_factors(settings, kept, float(class_masses(kept.labels).prod()))
    update = PairUpdate(settings, kept.labels, loss, factors.get(party.name, 1.0))
    update.curvature_bound *= max(factors.values(), default=1.0)
    held = np.flatnonzero((kept.labels.weights == 0) & (labels.weights > 0))
    rows = rows_to_calibrate(labels, kept.labels)
    rows = rows[:: max(1, -(-len(rows) // MOST_ROWS))]
    if kept.several:
        held, rows = (leaders_rows(party, one) for one in (held, rows))
    curve = ValidationCurve(settings, held, labels.targets[:, 0] > 0)
    penalty = penalty_of(settings, kept, loss)
    shard, f = learn_stochastically(party, shard, operator, update, penalty, curve, rows)
    return shard if f is None else _calibrated(shard, settings, f[:, 0], rows, labels)


def rows_to_calibrate(labels: Labels, kept: Labels) -> Array:
    """Return the held-out rows, or all rows if none are held out."""
    held = np.flatnonzero((kept.weights == 0) & (labels.weights > 0))
    return held if len(held) else np.flatnonzero(labels.weights > 0)


def leaders_rows(party: Party, rows: Array) -> Array:
    """Return the leader's row numbers, which it alone can measure: it tells the others."""
    return np.asarray(party.broadcast(rows, party.label_parties, ROWS), np.int64)


def _calibrated(
    shard: Shard, settings: AvfkamSettings, f: Array, rows: Array, labels: Labels
) -> Shard:
    """Add the slope and intercept that turn f into log-odds, and the threshold on these."""
    positive, weights = labels.targets[rows, 0] > 0, labels.weights[rows]
    slope, intercept = fit_log_odds(f, positive, weights)
    cut = threshold_of(settings.threshold, slope * f + intercept, positive, weights)
    return replace(shard, unit=np.array([slope]), constant=np.array([intercept]), threshold=cut)


class PairUpdate(UpdateRule):
    """AVFKAM's update by pairs of a positive row x⁺ and a negative row x⁻.

    It is AVFKAM Algorithm 1 without its loop; i are the directions of this step, j those before:

        line 2, `draw`:           pick pairs (x⁺, x⁻) at random
        line 4, `gradient`:       α_i ← −γ·[l'₁(f(x⁺), f(x⁻))·φ_i(x⁺) + l'₂(f(x⁺), f(x⁻))·φ_i(x⁻)]
        line 5, `Learner.decay`:  α_j ← (1 − γλ)·α_j

    In a batch the positive rows of all pairs stand first, then the negative ones.
    """

    def __init__(
        self, settings: AvfkamSettings, labels: Labels, loss: PairLoss, factor: float = 1.0
    ) -> None:
        # A pair moves along φ(x⁺) − φ(x⁻), whose square is up to twice that of one feature vector.
        self.curvature_bound = 2 * loss.curvature_bound
        self._pairs = settings.stochastic.batch_size
        self._loss = loss
        self._factor = factor
        used, positive = labels.weights > 0, labels.targets[:, 0] > 0
        self._ups = np.flatnonzero(positive & used)
        self._downs = np.flatnonzero(~positive & used)
        self._importance = np.zeros(len(labels.weights))
        for rows in (self._ups, self._downs):
            self._importance[rows] = labels.weights[rows] * len(rows) / labels.weights[rows].sum()

    def draw(self, key: bytes) -> Array:
        words = uniform_elements(key, (2, self._pairs), np.uint64)
        return np.concatenate(
            [
                rows[(word % np.uint64(len(rows))).astype(np.int64)]
                for rows, word in zip((self._ups, self._downs), words, strict=True)
            ]
        )

    def gradient(self, batch: FeatureOperator, rows: Array, f: Array, columns: slice) -> Array:
        """AVFKAM eq. (6): Σ l'₁·φ(x⁺) + l'₂·φ(x⁻), a mean over the pairs of the batch."""
        return batch.adjoint(self.slopes(f, rows), columns=columns)

    def slopes(self, f: Array, rows: Array) -> Array:
        """Return l'₁ at the positive rows and l'₂ at the negative ones, over all pairs."""
        first, second = self._loss.derivatives(f[: self._pairs], f[self._pairs :])
        return np.concatenate((first, second)) * self._weights(rows) * (self._factor / self._pairs)

    def mean_loss(self, f: Array, rows: Array) -> float:
        return float(self._loss.value(f[: self._pairs], f[self._pairs :]).mean())

    def _weights(self, rows: Array) -> Array:
        """Return the product of weights of each pair (2·pairs, 1): one on average, given twice."""
        pairs = self._importance[rows[: self._pairs]] * self._importance[rows[self._pairs :]]
        return np.concatenate((pairs, pairs))[:, None]
