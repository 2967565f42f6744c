"""Training and prediction where nothing is opened but predictions (``disclosure="sealed"``).

Label party, helper and dealer run the same lines on shares (`secure.sealed_features`): f,
residuals, gradient and coefficients exist only as two halves that say nothing by themselves, and
stay so in the model. The number of iterations and all step sizes are public and fixed
(`solvers.sealed_steps`), so that a fit looks the same whatever the data. Each prediction is opened
to the label party alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.phases import direction_block
from vertikal.algorithms.kernel_machine.sealed_residuals import ResidualMap, SquareResiduals
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard, Training
from vertikal.algorithms.kernel_machine.values import NOTHING, SPAN_CELLS, hide_rows
from vertikal.losses.pointwise import loss_named
from vertikal.party.party import Labels, Party
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring
from vertikal.secure.sealed.sealed_features import MATRIX_BITS, SealedBlock, SealedFeatures
from vertikal.solvers.objective import best_constants
from vertikal.solvers.sealed_steps import (
    COEFFICIENT_BITS,
    MOMENTUM_BITS,
    VALUE_BITS,
    SealedSteps,
    sealed_steps,
)

Array = npt.NDArray[Any]

ONE = 1 << MOMENTUM_BITS
WORD_BITS = 64
"""Bits of the words in which everything is shared."""

DISCLOSURES = {
    "keys": Disclosure("dealer's keys", "keys that the dealer drew", NOTHING, True),
    "shares": Disclosure("phase shares", "phases under a mask of the label party's", NOTHING, True),
    "correlation": Disclosure(
        "correlation", "the helper's shares of random cosines and sines", NOTHING, True
    ),
    "opening": Disclosure("opening", "phases under the dealer's mask", NOTHING, True),
    "difference": Disclosure("difference", "shares of the features, masked", NOTHING, True),
    "factors": Disclosure("factors", "the label party's weights, masked", NOTHING, True),
    "vectors": Disclosure(
        "shared vectors", "shares of f, residuals, gradient and coefficients, masked", NOTHING, True
    ),
    "masks": Disclosure("product masks", "the dealer's masks of products", NOTHING, True),
    "predictions": Disclosure(
        "predictions",
        "the helper's shares of predictions",
        "the label party learns f of the rows that were asked for, to `prediction_bits`, and "
        "nothing else; nobody learns the coefficients. A label party that does not follow the "
        "program can add to its share, and learns another combination of a row's features in its "
        "place, of as many bits",
        masked=True,
    ),
}
"""Kinds of messages by step of the protocol; only predictions tell their receiver anything."""


def train_sealed(
    party: Party, shard: Shard, labels: Labels | None, residuals: type[ResidualMap]
) -> Shard:
    """Fit on shares, and return the shard with this party's share of the coefficients, if any.

    ``labels`` are the label party's, centred so that the mean loss of f = 0 is at most 1.
    """
    settings, rows = shard.settings, party.table.rows
    residual_map = residuals(rows, settings.outputs, labels)
    steps = sealed_steps_of(settings, rows, residual_map)
    agreed = training_block(settings, rows, residual_map, steps)
    with party.clock.stage("phases", rows):
        sealed = hide(party, shard, agreed, slice(0, rows))
    if not sealed.has_role:
        return shard
    with party.clock.stage("solve", steps.iterations):
        residual_map.begin(sealed, steps)
        share = minimise(sealed, residual_map, steps, party.clock.advance)
    training = Training(
        steps.iterations, steps.iterations, True, [], [], penalty_of(settings, rows)
    )
    return replace(shard, training=training, coefficient_share=None if sealed.is_dealer else share)


def minimise(
    sealed: SealedFeatures,
    residual_map: ResidualMap,
    steps: SealedSteps,
    advance: Callable[[], None] = lambda: None,
) -> Array:
    """Take gradient steps with momentum on shares; return a share of √(2/D)·coefficients.

    D is the number of features: with cosine and sine of every phase twice that of directions. The
    share is (D, outputs) ring elements.
    """
    agreed = sealed.agreed
    w = before = np.zeros((agreed.features, agreed.outputs), np.uint64)
    for momentum in steps.momenta:
        f = sealed.forward(w)
        f = sealed.drop(f, MATRIX_BITS + COEFFICIENT_BITS - VALUE_BITS)
        r = residual_map.residuals(sealed, f, steps)
        gradient = sealed.adjoint(r) + w * np.uint64(steps.ridge)
        change = sealed.drop(gradient * np.uint64(steps.step), steps.step_shift)  # η·∇F
        # w + β (w − before) − (1 + β)·change, by one truncation.
        change = (w - before) * np.uint64(momentum) - change * np.uint64(ONE + momentum)
        w, before = w + sealed.drop(change, MOMENTUM_BITS), w
        advance()
    return w


def sealed_predictions(party: Party, shard: Shard) -> Iterator[tuple[slice, Array]]:
    """Yield (rows, f) in spans at the label party; the others take part."""
    settings = shard.settings
    features = settings.n_components * settings.per_phase
    height = max(16, SPAN_CELLS // features)
    # Parties without a role reveal nothing, and have no record of the fit.
    penalty = shard.training.penalty or 1.0
    for start in range(0, party.table.rows, height):
        span = slice(start, min(start + height, party.table.rows))
        agreed = SealedBlock(
            span.stop - span.start,
            settings.n_components,
            settings.feature_map.bits,
            settings.outputs,
            forward=1,
            reveals=True,
            pairs=settings.pairs,
            **opened_bits(settings.hidden.prediction_bits, penalty),
        )
        sealed = hide(party, shard, agreed, span)
        if not sealed.has_role:
            continue
        share = shard.coefficient_share
        if share is None:  # the dealer carries zeros along
            share = np.zeros((features, settings.outputs), np.uint64)
        f = sealed.drop(sealed.forward(share), MATRIX_BITS + COEFFICIENT_BITS - VALUE_BITS)
        opened = sealed.reveal(f)
        if opened is not None:
            yield span, Ring(64).decode_reals(opened, VALUE_BITS)


def opened_bits(prediction_bits: int, penalty: float) -> dict[str, int]:
    """Return the bits of a prediction that are revealed, and how many of them are noise.

    No f is beyond ±2/√λ: ‖w‖ ≤ √(2/λ) (`solvers.sealed_steps`), and ‖φ‖² ≤ 2. One bit of room is
    left for what rounding adds. So the bits above say nothing of f, and are not revealed.
    """
    whole = 2 + max(0, math.ceil(math.log2(2 / math.sqrt(penalty))))
    revealed = min(64, VALUE_BITS + whole)
    return {"revealed_bits": revealed, "noise_bits": max(0, revealed - prediction_bits)}


def hide(party: Party, shard: Shard, agreed: SealedBlock, span: slice) -> SealedFeatures:
    """Make this party's part in features of these rows that nobody sees."""
    (label_party,) = shard.settings.label_parties
    sealed = party.sealed_features(label_party, *shard.settings.assistants(), agreed, DISCLOSURES)
    feature_map = direction_block(shard, draw_directions(shard, label_party)).feature_map
    hide_rows(party, [(sealed, feature_map)], span, agreed.width, WORD_BITS)
    return sealed


def train_square(party: Party, shard: Shard, labels: Labels | None) -> Shard:
    """Fit the square loss; the label party takes its best constant off the targets first."""
    constant = np.zeros(shard.settings.outputs)
    if labels is not None:
        if not shard.settings.regression:
            loss = loss_named("square", regression=False)
            constant = best_constants(loss, labels.targets, labels.weights)
        labels = Labels(labels.targets - constant, labels.weights)
    trained = train_sealed(party, shard, labels, SquareResiduals)
    return replace(trained, constant=shard.constant + constant)


def penalty_of(settings: FdsklSettings, rows: int) -> float:
    """Return λ: as given, or 0.1 over the number of rows.

    Unlike in the open, weights do not enter: they are the label party's secret.
    """
    return 0.1 / rows if settings.alpha == "auto" else float(settings.alpha)


def sealed_steps_of(settings: FdsklSettings, rows: int, residual_map: ResidualMap) -> SealedSteps:
    """Return the public steps of this fit."""
    return sealed_steps(
        rows,
        settings.n_components * settings.per_phase,
        penalty_of(settings, rows),
        settings.max_iter,
        residual_map.curvature,
        MATRIX_BITS,
    )


def training_block(
    settings: FdsklSettings, rows: int, residual_map: ResidualMap, steps: SealedSteps
) -> SealedBlock:
    """Return the sizes that label party, helper and dealer agree on for this fit."""
    return SealedBlock(
        rows,
        settings.n_components,
        settings.feature_map.bits,
        settings.outputs,
        forward=steps.iterations,
        adjoint=steps.iterations,
        factors=residual_map.factors,
        pairs=settings.pairs,
    )
