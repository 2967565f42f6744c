"""The mean loss over rows: its derivatives, and the constants that a solver starts from."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.losses.pointwise import LOSSES
from vertikal.solvers.objective import RowObjective, automatic_penalty, best_constants

ROWS, OUTPUTS = 40, 2


def draw(loss, seed=0):
    generator = np.random.default_rng(seed)
    targets = np.where(generator.random((ROWS, OUTPUTS)) < 0.3, 1.0, -1.0)
    weights = generator.integers(0, 4, ROWS).astype(float)
    objective = RowObjective(targets, weights, LOSSES[loss], 0.1, np.array([0.2, -0.4]))
    return objective, generator.normal(size=(2, ROWS, OUTPUTS))


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_the_derivatives_against_finite_differences(loss):
    objective, (f, direction) = draw(loss)
    h = 1e-5
    up, here, down = (objective.value(f + s * h * direction) for s in (1, 0, -1))
    first, second = objective.along(f, direction)
    np.testing.assert_allclose(first, (up - down) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(second, (up - 2 * here + down) / h**2, rtol=1e-3)
    total = (objective.residuals(f) * direction).sum(axis=0)
    np.testing.assert_allclose(total, first, rtol=1e-12)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_a_row_of_weight_two_is_that_row_twice(loss):
    objective, (f, _) = draw(loss)
    copies = np.repeat(np.arange(ROWS), objective.weights.astype(int))
    twice = RowObjective(
        objective.targets[copies], np.ones(len(copies)), objective.loss, 0.1, objective.constant
    )
    np.testing.assert_allclose(twice.value(f[copies]), objective.value(f), rtol=1e-12)
    assert objective.shares().sum() == pytest.approx(1)


def test_it_starts_from_the_constants():
    objective, _ = draw("logistic")
    assert (objective.start() == [[0.2, -0.4]] * ROWS).all()


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_no_constant_is_better_than_the_best(loss):
    objective, _ = draw(loss)
    best = best_constants(objective.loss, objective.targets, objective.weights)
    least = objective.value(np.tile(best, (ROWS, 1)))
    for step in (-0.01, 0.01):
        assert (objective.value(np.tile(best + step, (ROWS, 1))) >= least).all()


def test_the_automatic_penalty_is_a_tenth_over_the_rows():
    assert automatic_penalty(np.ones(50)) == pytest.approx(0.002)
    assert automatic_penalty(np.full(25, 2.0)) == pytest.approx(0.002)
