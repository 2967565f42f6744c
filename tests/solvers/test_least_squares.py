"""Every x-step against the plain normal equations, or the conditions of its minimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vertikal.solvers.design import Design
from vertikal.solvers.least_squares import (
    ConjugateGradients,
    DualCholesky,
    PrimalCholesky,
    ProximalSolver,
    factored,
    largest_eigenvalue,
    least_squares,
)
from vertikal.solvers.regularisers import Regulariser

GENERATOR = np.random.default_rng(5)


def written_out(values, centre, factor, intercept):
    D = (values - centre) * factor
    return np.hstack((D, np.ones((len(D), 1)))) if intercept else D


def problem(rows, columns, *, intercept, weighted, kind="dense"):
    values = GENERATOR.normal(size=(rows, columns))
    values[np.abs(values) < 0.8] = 0
    centre, factor = GENERATOR.normal(size=columns), GENERATOR.uniform(0.5, 2, columns)
    weights = GENERATOR.integers(0, 4, rows).astype(float) if weighted else None
    given = sparse.csr_array(values) if kind == "sparse" else values
    design = Design(given, centre=centre, factor=factor, intercept=intercept, weights=weights)
    D = written_out(values, centre, factor, intercept)
    return design, D, np.ones(rows) if weights is None else weights


CASES = [
    (40, 7, "dense", PrimalCholesky),
    (9, 30, "dense", DualCholesky),
    (40, 7, "sparse", ConjugateGradients),
    (9, 30, "sparse", ConjugateGradients),
]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rows", "columns", "kind", "solver"), CASES)
def test_ridge_is_the_normal_equations(rows, columns, kind, solver, intercept, weighted):
    design, D, w = problem(rows, columns, intercept=intercept, weighted=weighted, kind=kind)
    chosen = least_squares(design, Regulariser(0.3, 0.0), 1.7)
    assert type(chosen) is solver
    targets = GENERATOR.normal(size=(rows, 2))
    ridge = 0.3 * np.diag([1.0] * columns + [0.0] * intercept)
    right = 1.7 * D.T @ (w[:, None] * targets)
    expected = np.linalg.solve(ridge + 1.7 * D.T @ (w[:, None] * D), right)
    start = np.zeros((design.width, 2))
    np.testing.assert_allclose(chosen.solve(targets, start), expected, atol=1e-7)
    # `follow` is the same problem from what a party has at hand.
    x, shared = GENERATOR.normal(size=start.shape), GENERATOR.normal(size=(rows, 2))
    own = design.forward(x)
    followed = chosen.follow(x, own, shared, design.adjoint(shared))
    again = chosen.solve(own - shared / 1.7, x)
    np.testing.assert_allclose(followed, again, atol=1e-7)
    np.testing.assert_allclose(own, D @ x, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("shape", [(40, 7), (9, 30)])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
def test_l1_and_elastic_net_meet_their_conditions(kind, shape, l1_ratio):
    design, D, w = problem(*shape, intercept=True, weighted=True, kind=kind)
    regulariser = Regulariser(20.0 if shape[0] > shape[1] else 2.0, l1_ratio)
    solver = least_squares(design, regulariser, 1.3)
    assert type(solver) is ProximalSolver
    targets = GENERATOR.normal(size=(shape[0], 1))
    x = solver.solve(targets, np.zeros((design.width, 1)))
    slope = 1.3 * D.T @ (w[:, None] * (D @ x - targets)) + np.where(
        design.penalised[:, None], regulariser.quadratic * x, 0.0
    )
    zero = (x == 0) & design.penalised[:, None]
    limit = regulariser.absolute
    assert zero.any()
    assert (np.abs(slope[zero]) <= limit + 1e-4).all()
    moved = ~zero & design.penalised[:, None]
    np.testing.assert_allclose(slope[moved], -limit * np.sign(x[moved]), atol=1e-4)
    assert abs(float(slope[-1, 0])) < 1e-4


@pytest.mark.parametrize(("rows", "columns"), [(30, 6), (30, 1), (8, 20)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_largest_eigenvalue_is_not_below(rows, columns, kind):
    design, D, w = problem(rows, columns, intercept=True, weighted=True, kind=kind)
    exact = np.linalg.eigvalsh(D.T @ (w[:, None] * D))[-1]
    np.testing.assert_allclose(design.gram(), D.T @ (w[:, None] * D), atol=1e-9)
    assert exact * (1 - 1e-9) <= largest_eigenvalue(design) <= 1.02 * exact


def test_dependent_columns_are_factored_with_a_little_more():
    column = GENERATOR.normal(size=(20, 1))
    D = np.hstack((column, column))
    factor, _ = factored(D.T @ D)
    assert np.isfinite(factor).all()
    with pytest.raises(FloatingPointError, match="x-step"):
        factored(-np.eye(3))


def test_the_prox_of_a_regulariser_is_its_minimum():
    regulariser = Regulariser(0.7, 0.4)
    x = np.linspace(-3, 3, 31)[:, None]
    grid = np.linspace(-4, 4, 80_001)
    everywhere = np.ones(31, bool)
    found = regulariser.prox(x, everywhere, 0.9)
    for value, best in zip(x[:, 0], found[:, 0], strict=True):
        cost = 0.9 * (0.28 * np.abs(grid) + 0.42 / 2 * grid**2) + 0.5 * (grid - value) ** 2
        assert best == pytest.approx(grid[np.argmin(cost)], abs=2e-4)
    assert regulariser.value(np.array([[2.0], [5.0]]), np.array([True, False])) == pytest.approx(
        0.7 * (0.4 * 2 + 0.6 / 2 * 4)
    )
