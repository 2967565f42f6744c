"""L-BFGS against SciPy on the explicit matrix, several label parties as threads; line search."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.phases import cosines
from tests.naive.solver import minimise, objective
from vertikal.compute import open_operator as operators
from vertikal.compute.open_operator import OpenOperator
from vertikal.kernels.random_features import FourierMap
from vertikal.losses.pointwise import LOSSES
from vertikal.ring.integers import Ring
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.lbfgs import (
    FULL_STEP_SLOPE,
    SEARCHED_SLOPE,
    Solution,
    factored,
    line_search,
    solve,
)
from vertikal.solvers.objective import RowObjective

ROWS, WIDTH = 150, 30


class Bare(FeatureOperator):
    """Φ as it is, without a Gram matrix."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.rows, self.width = matrix.shape

    def forward(self, coefficients, rows=None, columns=operators.ALL):
        return self.matrix @ coefficients

    def adjoint(self, residuals, rows=None, columns=operators.ALL):
        return self.matrix.T @ residuals


def open_operator(phases, total=WIDTH):
    width = phases.shape[1]
    feature_map = FourierMap(Ring(8), np.zeros((1, width)), np.zeros(width), total)
    return OpenOperator(feature_map, len(phases), phases, threads=1)


def make_problem(loss, outputs=1, *, weighted=False, penalty=0.01, seed=0):
    generator = np.random.default_rng(seed)
    phases = generator.integers(0, 256, (ROWS, WIDTH), np.uint8)
    features = cosines(phases) / np.sqrt(WIDTH)
    truth = features @ generator.normal(0, 3, (WIDTH, outputs))
    noisy = truth + generator.normal(size=truth.shape)
    targets = noisy if loss == "square" else np.where(noisy > 0.3, 1.0, -1.0)
    weights = generator.integers(0, 4, ROWS).astype(float) if weighted else np.ones(ROWS)
    constant = generator.normal(0, 0.3, outputs)
    return phases, features, RowObjective(targets, weights, LOSSES[loss], penalty, constant)


def by_scipy(features, problem):
    return minimise(
        features,
        problem.targets,
        problem.weights,
        problem.loss.name,
        problem.penalty,
        problem.constant,
    )


def total_objective(features, problem, coefficients):
    return sum(
        objective(
            coefficients[:, k],
            features,
            problem.targets[:, k],
            problem.weights,
            problem.loss.name,
            problem.penalty,
            float(problem.constant[k]),
        )[0]
        for k in range(problem.targets.shape[1])
    )


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_solution_is_scipys(loss, outputs, weighted):
    phases, features, problem = make_problem(loss, outputs, weighted=weighted)
    solution = solve(open_operator(phases), problem, tolerance=1e-9)
    assert solution.converged
    np.testing.assert_allclose(solution.coefficients, by_scipy(features, problem), atol=2e-6)
    expected = total_objective(features, problem, solution.coefficients)
    assert solution.objective[-1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("penalty", [1e-4, 1.0])
def test_the_gradient_at_the_solution_is_small(loss, penalty):
    phases, features, problem = make_problem(loss, penalty=penalty)
    solution = solve(open_operator(phases), problem, tolerance=1e-8)
    arguments = (features, problem.targets[:, 0], problem.weights, loss, penalty)
    _, gradient = objective(solution.coefficients[:, 0], *arguments, float(problem.constant[0]))
    _, before = objective(np.zeros(WIDTH), *arguments, float(problem.constant[0]))
    assert np.linalg.norm(gradient) < 1e-6 * np.linalg.norm(before)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_the_objective_falls_and_the_tolerance_is_kept(loss):
    phases, _, problem = make_problem(loss, 2)
    solution = solve(open_operator(phases), problem, tolerance=1e-6)
    falls = np.diff(solution.objective)
    assert (falls <= 1e-12).all()
    assert len(solution.objective) == solution.iterations + 1
    assert solution.gradient[-1] <= 1e-5 * solution.gradient[0]
    rough = solve(open_operator(phases), problem, tolerance=1e-1)
    assert rough.iterations < solution.iterations or loss == "square"


def test_one_iteration_costs_one_forward_and_one_adjoint_pass():
    phases, _, problem = make_problem("logistic")
    solution = solve(open_operator(phases), problem, tolerance=1e-6)
    assert solution.passes == 1 + 2 * solution.iterations


def test_max_iterations_ends_it_and_says_so():
    phases, _, problem = make_problem("logistic", penalty=1e-5)
    solution = solve(open_operator(phases), problem, tolerance=1e-12, max_iterations=2)
    assert solution.iterations == 2
    assert not solution.converged


def test_it_ends_where_enough_says_so():
    phases, _, problem = make_problem("logistic", penalty=1e-5)
    seen = []

    def enough(f):
        seen.append(f.copy())
        return len(seen) == 2

    solution = solve(open_operator(phases), problem, tolerance=1e-12, enough=enough)
    assert solution.iterations == 2
    assert not solution.converged
    np.testing.assert_array_equal(seen[-1], solution.predictions)


def test_report_sees_each_iteration():
    phases, _, problem = make_problem("logistic")
    seen: list[float] = []

    def report(solution: Solution) -> None:
        seen.append(solution.objective[-1])

    solution = solve(open_operator(phases), problem, report=report)
    assert seen == solution.objective


def test_an_operator_without_a_gram_matrix_is_solved_too():
    _, features, problem = make_problem("logistic")
    solution = solve(Bare(features), problem, tolerance=1e-9, max_iterations=500)
    np.testing.assert_allclose(solution.coefficients, by_scipy(features, problem), atol=2e-6)


@pytest.mark.parametrize("outputs", [1, 3])
def test_without_a_gram_matrix_the_next_penalty_goes_on_with_the_curvature_of_the_last(outputs):
    _, features, problem = make_problem("logistic", outputs, penalty=1e-4)
    features = features * np.geomspace(1, 0.03, WIDTH)
    operator = Bare(features)
    first = solve(operator, problem, tolerance=1e-4, max_iterations=500)
    smaller = replace(problem, penalty=2e-5)
    found = {
        known: solve(
            operator,
            smaller,
            tolerance=1e-4,
            max_iterations=500,
            start=first if known else replace(first, curvature=()),
        )
        for known in (True, False)
    }
    assert found[True].iterations < 0.9 * found[False].iterations
    exact = total_objective(features, smaller, by_scipy(features, smaller))
    for one in found.values():
        assert one.converged
        assert total_objective(features, smaller, one.coefficients) < exact * 1.001


def test_the_curvature_that_is_handed_on_is_the_losss_alone():
    _, features, problem = make_problem("square", weighted=True, penalty=0.3)
    solution = solve(Bare(features), problem, tolerance=1e-6)
    hessian = features.T @ (features * problem.shares()[:, None]) * problem.stiffness()
    assert len(solution.curvature) == solution.iterations > 3
    for step, change in solution.curvature:
        np.testing.assert_allclose(change, hessian @ step, atol=1e-9)


def test_a_subsample_preconditions_as_well():
    phases, features, problem = make_problem("logistic", weighted=True)
    sample = np.arange(0, ROWS, 3)
    solution = solve(open_operator(phases), problem, sample=sample, tolerance=1e-9)
    np.testing.assert_allclose(solution.coefficients, by_scipy(features, problem), atol=2e-6)


@pytest.mark.parametrize("lowest", [0.5, 0.0, -1e-9, -1e-3])
def test_a_preconditioner_is_the_inverse_of_the_matrix_with_enough_of_the_ridge(lowest):
    """By rounding a Gram matrix can have an eigenvalue below zero that no penalty lifts."""
    problem = make_problem("square", penalty=1e-12)[2]
    generator = np.random.default_rng(3)
    turn, _ = np.linalg.qr(generator.normal(size=(WIDTH, WIDTH)))
    gram = turn @ np.diag([lowest, *np.linspace(0.5, 2, WIDTH - 1)]) @ turn.T
    gram = (gram + gram.T) / 2
    matrix, ridge = problem.stiffness() * gram, problem.penalty
    for _ in range(8):
        matrix = matrix + ridge * np.eye(WIDTH)
        if np.linalg.eigvalsh(matrix)[0] > 1e-15:
            break
        ridge = max(10 * ridge, 1e-7 * matrix.diagonal().max())
    made = factored(gram.copy(), problem)
    assert made.offered
    asked = generator.normal(size=(WIDTH, 2))
    expected = np.linalg.solve(matrix, asked)
    np.testing.assert_allclose(made.apply(asked), expected, rtol=1e-4 if lowest else 1e-2)


def test_a_matrix_that_no_ridge_lifts_is_refused():
    gram = -1e9 * np.eye(WIDTH)
    with pytest.raises(
        FloatingPointError, match=r"could not be factored; are there huge weights\?"
    ):
        factored(gram, make_problem("square")[2])


def test_a_subsample_without_any_weight_does_not_spoil_the_solution():
    phases, features, problem = make_problem("logistic")
    weights = np.zeros(ROWS)
    weights[:20] = 1.0
    problem = RowObjective(
        problem.targets, weights, problem.loss, problem.penalty, problem.constant
    )
    sample = np.arange(30, 90)
    solution = solve(open_operator(phases), problem, sample=sample, tolerance=1e-9)
    np.testing.assert_allclose(solution.coefficients, by_scipy(features, problem), atol=2e-6)


def test_single_precision_features_give_the_same_to_their_precision(monkeypatch):
    monkeypatch.setattr(operators, "PRECISE", 0)
    phases, features, problem = make_problem("logistic")
    solution = solve(open_operator(phases), problem, tolerance=1e-5)
    np.testing.assert_allclose(solution.coefficients, by_scipy(features, problem), atol=2e-3)


def test_equal_columns_are_no_obstacle():
    phases, _, problem = make_problem("square", penalty=1e-9)
    phases[:, 1:] = phases[:, :1]
    features = cosines(phases) / np.sqrt(WIDTH)
    solution = solve(open_operator(phases), problem, tolerance=1e-6)
    assert solution.converged
    best = total_objective(features, problem, by_scipy(features, problem))
    assert total_objective(features, problem, solution.coefficients) <= best + 1e-8


class Lockstep:
    """Sums of parties that run as threads; each addend is rounded to fixed point."""

    def __init__(self, count):
        self._barrier = threading.Barrier(count, timeout=30)
        self._parts = [None] * count

    def total(self, index, partial, fraction):
        self._parts[index] = np.round(partial * 2.0**fraction) * 2.0**-fraction
        self._barrier.wait()
        whole = np.sum(self._parts, axis=0)
        self._barrier.wait()
        return whole


class Share:
    """One party's end of a `Lockstep`."""

    def __init__(self, lockstep, index):
        self._lockstep = lockstep
        self._index = index

    def rows(self, partial):
        return self._lockstep.total(self._index, partial, 36)

    def scalars(self, partial):
        return self._lockstep.total(self._index, partial, 76)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("cuts", [[13], [10, 18]])
def test_several_label_parties_find_the_solution_of_one(loss, cuts):
    phases, features, problem = make_problem(loss, 2)
    pieces = np.split(np.arange(WIDTH), cuts)
    sums = Lockstep(len(pieces))
    solutions: list[Solution] = [None] * len(pieces)

    def run(i):
        solutions[i] = solve(
            open_operator(np.ascontiguousarray(phases[:, pieces[i]])),
            problem,
            sums=Share(sums, i),
            tolerance=1e-7,
        )

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(pieces))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = np.vstack([solution.coefficients for solution in solutions])
    assert [len(s.coefficients) for s in solutions] == [len(piece) for piece in pieces]
    np.testing.assert_allclose(together, by_scipy(features, problem), atol=1e-4)
    # All saw the same sums and took the same decisions.
    assert len({(s.iterations, s.passes, s.converged) for s in solutions}) == 1
    assert all(s.objective == solutions[0].objective for s in solutions)
    assert all(s.converged for s in solutions)


def quadratic(curvature, best):
    """t ↦ curvature/2·(t − best)²."""
    c, b = np.array(curvature, float), np.array(best, float)
    return lambda t: (c * (t - b), np.broadcast_to(c, t.shape).copy())


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-2, 3e2)), min_size=1, max_size=4))
def test_quadratics_are_levelled(problems):
    curvature, best = map(np.array, zip(*problems, strict=True))
    slope = quadratic(curvature, best)
    start = slope(np.zeros(len(problems)))[0]
    steps = line_search(slope, start)
    assert (steps > 0).all()
    assert (np.abs(slope(steps)[0]) <= FULL_STEP_SLOPE * np.abs(start) + 1e-12).all()


def test_a_good_full_step_is_taken_at_once():
    calls = []

    def slope(t):
        calls.append(t.copy())
        return 0.4 * np.ones(1), np.ones(1)

    assert line_search(slope, np.array([-1.0])).tolist() == [1.0]
    assert len(calls) == 1


def test_otherwise_the_slope_shrinks_to_a_tenth():
    slope = quadratic([1.0], [5.0])
    (step,) = line_search(slope, np.array([-5.0]))
    assert abs(slope(np.array([step]))[0][0]) <= SEARCHED_SLOPE * 5
    assert 4.5 <= step <= 5.5


def test_outputs_do_not_disturb_one_another():
    together = line_search(quadratic([1, 3, 0.5], [5, 1, 40]), np.array([-5.0, -3.0, -20.0]))
    assert together[1] == 1.0
    assert together[0] == pytest.approx(5, rel=0.15)
    assert together[2] == pytest.approx(40, rel=0.15)


@pytest.mark.parametrize("start", [0.0])
def test_where_there_is_no_descent_nothing_moves(start):
    steps = line_search(quadratic([1.0, 1.0], [0.0, 1.0]), np.array([start, -1.0]))
    assert steps.tolist() == [0.0, 1.0]


def test_a_slope_without_curvature_is_followed_by_doubling():
    """A hinge: slope −1 up to t = 6, +1 after; Newton has nothing to go by."""

    def slope(t):
        return np.where(t < 6, -1.0, 1.0), np.zeros_like(t)

    (step,) = line_search(slope, np.array([-1.0]))
    assert step == pytest.approx(6, abs=0.1)


def test_an_overshooting_newton_step_is_held_back():
    """softplus-like: nearly no curvature at t = 1, the minimum far away."""

    def slope(t):
        wave = np.tanh(t - 30.0)
        return wave, 1 - wave**2

    (step,) = line_search(slope, np.array([-1.0]))
    assert 0 < step < 64
    assert abs(slope(np.array([step]))[0][0]) <= 0.5
