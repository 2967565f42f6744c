"""Sums over pairs against two loops over the pairs, and the exact solver on them against SciPy."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tests.naive.pairwise import bend_over_pairs, over_pairs
from tests.naive.phases import cosines
from tests.solvers.test_lbfgs import Lockstep, Share, open_operator
from vertikal.losses.pairwise import PAIR_LOSSES
from vertikal.solvers.lbfgs import solve
from vertikal.solvers.pair_objective import PairObjective

NAMES = sorted(PAIR_LOSSES)
ROWS, WIDTH = 60, 30


def draw(seed, rows=25, spread=1.5, *, ties=False):
    generator = np.random.default_rng(seed)
    f = generator.normal(0, spread, rows)
    if ties:
        f = np.round(f)  # margins of exactly 1 are where the hinge bends
    positive = generator.random(rows) < 0.4
    positive[:2] = True, False
    weights = generator.integers(0, 3, rows).astype(float)
    weights[:2] = 1.0
    return f, positive, weights, generator.normal(size=rows)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), ties=st.booleans(), shift=st.sampled_from([0.0, 1e4]))
def test_value_gradient_and_bend_equal_those_over_listed_pairs(name, seed, ties, shift):
    loss = PAIR_LOSSES[name]
    f, positive, weights, direction = draw(seed, ties=ties)
    problem = PairObjective(positive, weights, loss, 0.1)
    value, gradient = over_pairs(name, f, positive, weights)
    moved = (f + shift)[:, None]  # a constant changes no pair
    assert problem.value(moved)[0] == pytest.approx(value, rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(problem.residuals(moved)[:, 0], gradient, rtol=1e-6, atol=1e-9)
    first, second = problem.along(moved, direction[:, None])
    assert first[0] == pytest.approx(gradient @ direction, rel=1e-6, abs=1e-8)

    def bend(z):
        return float(loss.bend(np.array([z]))[0])

    wanted = bend_over_pairs(f, direction, positive, weights, bend)
    if not ties or name != "squared_hinge":  # at its kink either side will do
        assert second[0] == pytest.approx(wanted, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_against_finite_differences(name):
    f, positive, weights, direction = draw(3)
    problem = PairObjective(positive, weights, PAIR_LOSSES[name], 0.1)
    h = 1e-6
    up, down = (problem.value((f + s * h * direction)[:, None])[0] for s in (1, -1))
    assert problem.along(f[:, None], direction[:, None])[0][0] == pytest.approx(
        (up - down) / (2 * h), rel=1e-5
    )


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_weight_zero_are_in_no_pair(name):
    f, positive, weights, _ = draw(4)
    kept = weights > 0
    whole = PairObjective(positive, weights, PAIR_LOSSES[name], 0.1)
    part = PairObjective(positive[kept], weights[kept], PAIR_LOSSES[name], 0.1)
    assert whole.value(f[:, None]) == pytest.approx(part.value(f[kept][:, None]))
    assert not whole.residuals(f[:, None])[~kept].any()


def test_a_weight_of_two_is_the_row_twice():
    f, positive, _, _ = draw(5)
    weights = np.ones(len(f))
    weights[::3] = 2.0
    twice = np.repeat(np.arange(len(f)), weights.astype(int))
    for loss in PAIR_LOSSES.values():
        weighted = PairObjective(positive, weights, loss, 0.1).value(f[:, None])
        ones = np.ones(len(twice))
        assert weighted == pytest.approx(
            PairObjective(positive[twice], ones, loss, 0.1).value(f[twice][:, None])
        )


@pytest.mark.parametrize("name", ["square", "squared_hinge"])
def test_many_rows_need_no_list_of_pairs(name):
    """10¹⁰ pairs would not fit anywhere: sums and sorting suffice."""
    generator = np.random.default_rng(0)
    rows = 200_000
    f = generator.normal(size=(rows, 1))
    positive = np.arange(rows) % 2 == 0
    problem = PairObjective(positive, np.ones(rows), PAIR_LOSSES[name], 0.1)
    assert problem.said == "all 10,000,000,000 pairs"
    u, v = f[positive, 0], f[~positive, 0]
    sample = PAIR_LOSSES[name].value(u, generator.permutation(v)).mean()
    assert problem.value(f)[0] == pytest.approx(sample, rel=0.05)
    assert problem.residuals(f).sum() == pytest.approx(0, abs=1e-9)


def test_the_logistic_loss_draws_pairs_beyond_a_number_and_says_so():
    f, positive, weights, direction = draw(6, rows=60)
    few = PairObjective(positive, weights, PAIR_LOSSES["logistic"], 0.1)
    many = PairObjective(positive, weights, PAIR_LOSSES["logistic"], 0.1, most_pairs=200)
    count = (positive & (weights > 0)).sum() * (~positive & (weights > 0)).sum()
    assert few.said == f"all {count} pairs"
    assert many.said == f"200 of {count} pairs, drawn at random"
    assert many.value(f[:, None])[0] == pytest.approx(few.value(f[:, None])[0], rel=0.2)
    h = 1e-6
    up, down = (many.value((f + s * h * direction)[:, None])[0] for s in (1, -1))
    first, _ = many.along(f[:, None], direction[:, None])
    assert first[0] == pytest.approx((up - down) / (2 * h), rel=1e-5)


def make(name, seed=0):
    generator = np.random.default_rng(seed)
    phases = generator.integers(0, 256, (ROWS, WIDTH), np.uint8)
    features = cosines(phases) / np.sqrt(WIDTH)
    truth = features @ generator.normal(0, 3, WIDTH) + generator.normal(size=ROWS)
    weights = generator.integers(0, 3, ROWS).astype(float)
    return phases, features, truth > 0.8, weights


def by_scipy(name, features, positive, weights, penalty):
    def objective(a):
        value, gradient = over_pairs(name, features @ a, positive, weights)
        return value + penalty / 2 * a @ a, features.T @ gradient + penalty * a

    found = minimize(
        objective, np.zeros(WIDTH), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-9}
    )
    return found.x, found.fun


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_scipys(name):
    phases, features, positive, weights = make(name)
    wanted, least = by_scipy(name, features, positive, weights, 0.01)
    problem = PairObjective(positive, weights, PAIR_LOSSES[name], 0.01)
    solution = solve(open_operator(phases), problem, tolerance=1e-9)
    assert solution.converged
    assert solution.objective[-1] == pytest.approx(least, rel=1e-9)
    np.testing.assert_allclose(solution.coefficients[:, 0], wanted, atol=5e-5)
    assert (np.diff(solution.objective) <= 1e-12).all()


@pytest.mark.parametrize("name", NAMES)
def test_several_label_parties_find_the_solution_of_one(name):
    phases, features, positive, weights = make(name)
    wanted, _ = by_scipy(name, features, positive, weights, 0.01)
    problem = PairObjective(positive, weights, PAIR_LOSSES[name], 0.01)
    pieces = np.split(np.arange(WIDTH), [10, 18])
    sums = Lockstep(len(pieces))
    solutions = [None] * len(pieces)

    def run(i):
        block = np.ascontiguousarray(phases[:, pieces[i]])
        solutions[i] = solve(open_operator(block), problem, sums=Share(sums, i), tolerance=1e-7)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(pieces))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    together = np.vstack([solution.coefficients for solution in solutions])
    np.testing.assert_allclose(together[:, 0], wanted, atol=2e-3)
    assert len({(s.iterations, s.passes) for s in solutions}) == 1
