"""The x-step over a ball: every form meets the conditions of the minimum, and is the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from vertikal.solvers.bounded_least_squares import (
    ACCURACY,
    DualBall,
    PrimalBall,
    RitzBall,
    ball_solver,
)
from vertikal.solvers.design import Design
from vertikal.solvers.regularisers import Regulariser

GENERATOR = np.random.default_rng(8)
LENGTH = Regulariser(0.2, 0.0)
CURVATURE = 1.3

CASES = [
    (30, 5, "dense", PrimalBall),
    (7, 20, "dense", DualBall),
    (30, 5, "sparse", RitzBall),
    (7, 20, "sparse", RitzBall),
    (200, 150, "sparse", RitzBall),
]


def plain(D, w, targets, radius):
    """The multiplier by a root finder on the normal equations."""

    def x(shift):
        matrix = (0.2 + shift) * np.eye(D.shape[1]) + CURVATURE * D.T @ (w[:, None] * D)
        return np.linalg.solve(matrix, CURVATURE * D.T @ (w * targets))

    if np.linalg.norm(x(0.0)) <= radius:
        return x(0.0)
    return x(brentq(lambda shift: np.linalg.norm(x(shift)) - radius, 0, 1e8, xtol=1e-13))


@pytest.mark.parametrize("radius", [0.02, 0.3, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rows", "columns", "kind", "solver"), CASES)
def test_it_is_the_minimum_over_the_ball(rows, columns, kind, solver, weighted, radius):
    D = GENERATOR.normal(size=(rows, columns))
    D[np.abs(D) < 0.8] = 0
    weights = GENERATOR.integers(0, 4, rows) + 0.5 if weighted else None
    w = np.ones(rows) if weights is None else weights
    design = Design(sparse.csr_array(D) if kind == "sparse" else D, weights=weights)
    chosen = ball_solver(design, LENGTH, CURVATURE, radius)
    assert type(chosen) is solver
    targets = GENERATOR.normal(size=(rows, 2))
    targets[:, 1] *= 0.01  # within the ball where the first is not
    x = chosen.solve(targets, np.zeros((columns, 2)))
    for j in range(2):
        assert np.linalg.norm(x[:, j]) <= radius * (1 + 1e-12)
        expected = plain(D, w, targets[:, j], radius)
        moved = np.sqrt(w) * (D @ (x[:, j] - expected))
        assert np.linalg.norm(moved) <= 2 * ACCURACY * radius * np.sqrt(w.max())


def test_targets_of_zero_give_zero():
    design = Design(sparse.csr_array(np.eye(4)))
    solver = ball_solver(design, LENGTH, CURVATURE, 1.0)
    assert not solver.solve(np.zeros((4, 1)), np.ones((4, 1))).any()


def test_fewer_lanczos_vectors_than_columns_are_enough():
    """Two distinct eigenvalues: the minimum lies in the span of two vectors."""
    design = Design(sparse.csr_array(np.diag(np.where(np.arange(300) < 5, 3.0, 1.0))))
    products = []
    inside = design.forward
    design.forward = lambda x: products.append(1) or inside(x)  # type: ignore[method-assign]
    ball_solver(design, LENGTH, CURVATURE, 0.5).solve(np.ones((300, 1)), np.zeros((300, 1)))
    assert len(products) == 2
