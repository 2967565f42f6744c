"""Penalties chosen on rows held out: parts of rows, the path, and its ends."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive.tuned import square_fit, square_loss
from vertikal.algorithms.tuned.held_out import Fitting, choose_penalty, fit, parts_of
from vertikal.losses.pointwise import loss_named
from vertikal.party.party import Labels
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.lbfgs import Alone

ROWS, WIDTH = 200, 30
GENERATOR = np.random.default_rng(0)
PHI = GENERATOR.normal(size=(ROWS, WIDTH)) / np.sqrt(WIDTH)
Y = PHI @ GENERATOR.normal(size=WIDTH) + 2 * GENERATOR.normal(size=ROWS)
HELD = parts_of(Y[:, None], 4, 0, classes=False)


class Dense(FeatureOperator):
    """A matrix that counts the products with it."""

    def __init__(self, matrix):
        self.matrix, self.forwards = matrix, 0
        self.rows, self.width = matrix.shape

    def forward(self, coefficients, rows=None, columns=slice(None)):
        self.forwards += 1
        return self.matrix @ coefficients

    def adjoint(self, residuals, rows=None, columns=slice(None)):
        return self.matrix.T @ residuals

    def gram(self, rows, weights, columns=slice(None)):
        return (self.matrix[rows].T * weights) @ self.matrix[rows]


def fitting(operator=None, **changes):
    labels = Labels(Y[:, None], np.ones(ROWS))
    loss = loss_named("square", regression=True)
    given = {"tolerance": 1e-9, "seed": 0} | changes
    return Fitting(operator or Dense(PHI), labels, loss, np.zeros(1), Alone(), **given)


def test_parts_are_all_rows_once_and_classes_are_spread():
    targets = np.where(np.arange(100) < 8, 1.0, -1.0)[:, None]
    parts = parts_of(targets, 4, 1, classes=True)
    assert np.sum(parts, axis=0).tolist() == [1] * 100
    assert [int(part[:8].sum()) for part in parts] == [2] * 4


@pytest.mark.parametrize("parts", [1, 4])
def test_the_penalty_of_the_smallest_loss(parts):
    penalties = (100.0, 10.0, 1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
    chosen = choose_penalty(fitting(), penalties, HELD[:parts])
    losses = {
        penalty: np.mean(
            [
                square_loss(PHI[out] @ square_fit(PHI[~out], Y[~out], penalty, 0.0), Y[out]).mean()
                for out in HELD[:parts]
            ]
        )
        for penalty in penalties
    }
    best = min(losses, key=losses.get)
    assert chosen.penalty == best
    for one in chosen.tried:
        assert one.loss == pytest.approx(losses[one.penalty], rel=1e-5)
    if parts == 1:
        assert len(chosen.tried) < len(penalties)


def test_larger_penalties_are_tried_where_the_first_is_the_best():
    chosen = choose_penalty(fitting(), (1e-4, 1e-5), HELD[:1])
    assert chosen.penalty == pytest.approx(1e-1, rel=1e-9)
    assert [one.penalty for one in chosen.tried[:2]] == [1e-4, 1e-5]


def test_smaller_penalties_are_tried_where_the_last_is_the_best():
    chosen = choose_penalty(fitting(), (1e3, 1e2), HELD[:1])
    assert chosen.penalty == min(one.penalty for one in chosen.tried) == pytest.approx(1e-1)


def test_a_sparing_path_ends_at_the_first_penalty_that_is_worse():
    """The best is 0.1 (see above); the others go on to two that are worse."""
    penalties = (10.0, 1.0, 0.1, 0.01, 0.001, 1e-4)
    whole = choose_penalty(fitting(), penalties, HELD[:1])
    spared = choose_penalty(fitting(sparing=True), penalties, HELD[:1])
    assert [one.penalty for one in whole.tried] == [10.0, 1.0, 0.1, 0.01, 0.001]
    assert [one.penalty for one in spared.tried] == [10.0, 1.0, 0.1, 0.01]
    assert spared.penalty == whole.penalty


def test_a_sparing_path_tries_no_penalty_above_the_first():
    chosen = choose_penalty(fitting(sparing=True), (1e-4, 1e-5), HELD[:1])
    assert [one.penalty for one in chosen.tried] == [1e-4, 1e-5]


def test_a_sparing_fit_is_given_up_once_rows_held_out_are_worse_for_two_steps():
    """Without a Gram matrix a fit takes many steps, each of which would open values."""

    class Hidden(Dense):
        def gram(self, rows, weights, columns=slice(None)):
            return None

    opened = {}
    for sparing in (False, True):
        operator = Hidden(PHI)
        chosen = choose_penalty(fitting(operator, sparing=sparing), (0.1, 1e-6), HELD[:1])
        assert chosen.penalty == 0.1
        opened[sparing] = operator.forwards
    operator = Hidden(PHI)
    choose_penalty(fitting(operator), (0.1,), HELD[:1])
    assert opened[True] == operator.forwards + 2 < opened[False]


def test_iterations_are_bounded_over_all_fits():
    operator = Dense(PHI)
    choose_penalty(
        fitting(operator, most_iterations=5, most_each=3), (1.0, 0.1, 0.01, 1e-3), HELD[:1]
    )
    assert operator.forwards <= 6


def test_a_fit_on_all_rows_goes_on_from_the_chosen_one():
    problem = fitting()
    chosen = choose_penalty(problem, (1.0, 0.1, 0.01), HELD[:1])
    found = fit(problem, chosen.penalty, None, chosen.factor, chosen.fit)
    expected = square_fit(PHI, Y, chosen.penalty, 0.0)
    np.testing.assert_allclose(found.coefficients[:, 0], expected, rtol=0, atol=1e-6)


def test_a_part_that_has_all_the_weight_leaves_a_fit():
    """Few rows may carry all weight, and all of them may be held out."""
    weights = np.where(HELD[0], 1.0, 0.0)
    problem = fitting()
    problem = Fitting(
        problem.operator,
        Labels(Y[:, None], weights),
        problem.loss,
        problem.constant,
        problem.sums,
        1e-6,
        0,
    )
    assert np.isfinite(choose_penalty(problem, (1.0, 0.1), HELD[:1]).fit.coefficients).all()
