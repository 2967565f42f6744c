"""KOMD against a general solver of quadratic programmes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from vertikal.solvers.komd import komd, project, separate

generator = np.random.default_rng(0)


def kernel_of(items: int) -> np.ndarray:
    ratings = (generator.random((40, items)) < 0.3).astype(float)
    counts = ratings.T @ ratings + 1e-9
    lengths = np.sqrt(counts.diagonal())
    return counts / np.outer(lengths, lengths)


def value(K, q, penalty, a):
    return a @ K @ a / 2 + penalty * a @ a / 2 - q @ a


@pytest.mark.parametrize("penalty", [0.01, 0.1, 1.0])
def test_many_users_at_once_reach_what_a_general_solver_finds(penalty):
    K = kernel_of(25)
    q = K.mean(axis=1)
    positives = [
        np.sort(generator.choice(25, size, replace=False)) for size in (1, 2, 5, 5, 12, 25)
    ]
    positives.append(np.zeros(0, int))
    found = komd(K, q, positives, penalty, tolerance=1e-9)
    assert len(found[-1]) == 0
    for p, a in zip(positives[:-1], found, strict=False):
        assert a.sum() == pytest.approx(1)
        assert a.min() >= 0
        inner, linear = K[np.ix_(p, p)], q[p]
        theirs = minimize(
            lambda x, inner=inner, linear=linear: value(inner, linear, penalty, x),
            np.full(len(p), 1 / len(p)),
            jac=lambda x, inner=inner, linear=linear: inner @ x + penalty * x - linear,
            bounds=[(0, None)] * len(p),
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert value(inner, linear, penalty, a) <= theirs.fun + 1e-8
        assert a == pytest.approx(theirs.x, abs=2e-3)


def test_one_user_alone_gets_the_same_as_among_others():
    K = kernel_of(20)
    q = K.mean(axis=1)
    positives = [np.arange(3), np.arange(5, 18), np.array([7])]
    together = komd(K, q, positives, 0.1, tolerance=1e-10)
    for p, a in zip(positives, together, strict=True):
        assert komd(K, q, [p], 0.1, tolerance=1e-10)[0] == pytest.approx(a, abs=1e-4)


def test_the_projection_is_the_nearest_point():
    v = generator.normal(size=(30, 6)) * 2
    there = np.ones((30, 6), bool)
    there[:10, 4:] = False
    found = project(v, there)
    assert found.sum(axis=1) == pytest.approx(np.ones(30))
    assert found.min() >= 0
    assert not found[~there].any()
    distance = np.square(np.where(there, found - v, 0)).sum(axis=1)
    for _ in range(200):
        other = np.where(there, generator.dirichlet(np.ones(6), 30), 0)
        other /= other.sum(axis=1, keepdims=True)
        assert (np.square(np.where(there, other - v, 0)).sum(axis=1) >= distance - 1e-12).all()


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
def test_two_classes_meet_at_their_nearest_points(penalty):
    """The conditions of optimality: in each class no gradient below that of rows with weight."""
    points = generator.normal(size=(50, 4))
    signs = np.where(points[:, 0] + 0.3 * generator.normal(size=50) > 0, 1.0, -1.0)
    K = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=2))
    penalties = np.full(50, penalty)
    found = separate(K.__matmul__, float(K.sum(axis=1).max()), signs, penalties, 1e-10)
    assert found.min() >= 0
    gradient = signs * (K @ (signs * found)) + penalty * found
    for one in (-1, 1):
        mine = signs == one
        assert found[mine].sum() == pytest.approx(1)
        carrying = mine & (found > 1e-6)
        assert np.ptp(gradient[carrying]) < 1e-4
        assert gradient[mine].min() > gradient[carrying].min() - 1e-4
