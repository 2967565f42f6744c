"""The line search on convex functions whose derivatives are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertikal.solvers.line_search import CLOSE, GOOD, search


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
    steps = search(slope, start)
    assert (steps > 0).all()
    assert (np.abs(slope(steps)[0]) <= GOOD * np.abs(start) + 1e-12).all()


def test_a_good_full_step_is_taken_at_once():
    calls = []

    def slope(t):
        calls.append(t.copy())
        return 0.4 * np.ones(1), np.ones(1)

    assert search(slope, np.array([-1.0])).tolist() == [1.0]
    assert len(calls) == 1


def test_otherwise_the_slope_shrinks_to_a_tenth():
    slope = quadratic([1.0], [5.0])
    (step,) = search(slope, np.array([-5.0]))
    assert abs(slope(np.array([step]))[0][0]) <= CLOSE * 5
    assert 4.5 <= step <= 5.5


def test_outputs_do_not_disturb_one_another():
    together = search(quadratic([1, 3, 0.5], [5, 1, 40]), np.array([-5.0, -3.0, -20.0]))
    assert together[1] == 1.0
    assert together[0] == pytest.approx(5, rel=0.15)
    assert together[2] == pytest.approx(40, rel=0.15)


@pytest.mark.parametrize("start", [0.0])
def test_where_there_is_no_descent_nothing_moves(start):
    steps = search(quadratic([1.0, 1.0], [0.0, 1.0]), np.array([start, -1.0]))
    assert steps.tolist() == [0.0, 1.0]


def test_a_slope_without_curvature_is_followed_by_doubling():
    """A hinge: slope −1 up to t = 6, +1 after; Newton has nothing to go by."""

    def slope(t):
        return np.where(t < 6, -1.0, 1.0), np.zeros_like(t)

    (step,) = search(slope, np.array([-1.0]))
    assert step == pytest.approx(6, abs=0.1)


def test_an_overshooting_newton_step_is_held_back():
    """softplus-like: nearly no curvature at t = 1, the minimum far away."""

    def slope(t):
        wave = np.tanh(t - 30.0)
        return wave, 1 - wave**2

    (step,) = search(slope, np.array([-1.0]))
    assert 0 < step < 64
    assert abs(slope(np.array([step]))[0][0]) <= 0.5
