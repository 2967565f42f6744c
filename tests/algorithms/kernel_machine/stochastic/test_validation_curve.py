"""The curve of a stochastic run: the AUC against two loops, and when it is looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.pairwise import auc as plain_auc
from vertikal import AVFKAMClassifier, Stochastic
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings, FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import (
    MOST_ROWS,
    POINTS,
    ValidationCurve,
    auc,
)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), ties=st.booleans())
def test_the_auc_is_the_share_of_pairs_in_order(seed, ties):
    generator = np.random.default_rng(seed)
    f = generator.normal(size=30)
    f = np.round(f) if ties else f
    positive = generator.random(30) < 0.4
    positive[:2] = True, False
    assert auc(f, positive) == pytest.approx(plain_auc(f, positive))


def curve(steps, rows):
    agreed = AvfkamSettings(
        parties=("a", "b"), label_parties=("a",), solver=Stochastic(n_steps=steps)
    )
    return ValidationCurve(agreed, np.arange(rows), np.arange(rows) % 2 == 0)


@pytest.mark.parametrize("steps", [1, 39, 40, 1000])
def test_a_curve_has_some_dozen_points(steps):
    looks = sum(curve(steps, 10).due(step) for step in range(1, steps + 1))
    assert min(steps, POINTS) <= looks < 2 * POINTS


def test_of_many_held_out_rows_a_part_is_looked_at():
    rows = curve(10, 3 * MOST_ROWS + 1).rows
    assert MOST_ROWS / 2 < len(rows) <= MOST_ROWS
    assert len(curve(10, 7).rows) == 7


@pytest.mark.parametrize("label_parties", [1, 2])
def test_a_run_in_turns_draws_its_curve_on_the_held_out_rows(label_parties):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 4))
    y = X[:, 0] * X[:, 2] > 0.3
    notes = []

    class Listener:
        def begin(self, party, stage, total): ...
        def end(self, party, stage, seconds): ...
        def advance(self, party, stage, amount, note):
            notes.append((party, note))

    model = AVFKAMClassifier(
        parties=2,
        label_parties=label_parties,
        solver=Stochastic(schedule="turns", n_steps=200, block_size=16),
        n_components=128,
        validation=0.25,
        random_state=0,
        verbose=Listener(),
    ).fit(X, y)
    scores = [point.auc for point in model.curve_]
    assert len(scores) == POINTS
    assert scores[-1] > 0.85 > scores[0] - 0.2
    seconds = [point.seconds for point in model.curve_]
    assert seconds == sorted(seconds)
    assert model.curve_[-1].total == 200
    assert sum(model.updates_.values()) == 200
    assert all(set(ages) == {0} for ages in model.staleness_.values())
    assert any("AUC 0." in note for party, note in notes if party == "party1")


def test_hidden_features_are_not_opened_to_draw_a_curve():
    """Each look would open f of the held-out rows once more."""
    agreed = FdsklSettings(
        parties=("a", "b", "c"), label_parties=("a",), solver="dsg", disclosure="values"
    )
    assert len(ValidationCurve(agreed, np.arange(10), np.arange(10) % 2 == 0).rows) == 0
