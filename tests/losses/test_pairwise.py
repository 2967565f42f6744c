"""Pairwise losses: both derivatives against finite differences, convexity, bounds, limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.pairwise import PLAIN_PAIRS
from vertikal.errors import InputError
from vertikal.losses.pairwise import PAIR_LOSSES, pair_loss_named

NAMES = sorted(PAIR_LOSSES)
predictions = st.floats(-15, 15)
names = st.sampled_from(NAMES)


def value_at(loss, u, v):
    return float(loss.value(np.array([u]), np.array([v]))[0])


def derivatives_at(loss, u, v):
    return [float(part[0]) for part in loss.derivatives(np.array([u]), np.array([v]))]


@settings(deadline=None)
@given(name=names, u=predictions, v=predictions)
def test_values_and_derivatives_equal_the_plain_ones(name, u, v):
    loss = PAIR_LOSSES[name]
    value, first, second = PLAIN_PAIRS[name](u, v)
    assert value_at(loss, u, v) == pytest.approx(value, rel=1e-12, abs=1e-14)
    assert derivatives_at(loss, u, v) == pytest.approx([first, second], rel=1e-12, abs=1e-14)


@settings(deadline=None)
@given(name=names, u=predictions, v=predictions)
def test_both_derivatives_against_finite_differences(name, u, v):
    loss, h = PAIR_LOSSES[name], 1e-5
    first = (value_at(loss, u + h, v) - value_at(loss, u - h, v)) / (2 * h)
    second = (value_at(loss, u, v + h) - value_at(loss, u, v - h)) / (2 * h)
    assert derivatives_at(loss, u, v) == pytest.approx([first, second], rel=1e-6, abs=2e-5)


@settings(deadline=None)
@given(name=names, z=st.floats(-20, 20))
def test_the_bend_against_finite_differences(name, z):
    loss, h = PAIR_LOSSES[name], 1e-5
    if name == "squared_hinge" and abs(z - 1) <= h:
        z = 0.5  # away from its kink, where the bend jumps
    slopes = loss.slope(np.array([z - h, z + h]))
    bend = float(slopes[1] - slopes[0]) / (2 * h)
    assert float(loss.bend(np.array([z]))[0]) == pytest.approx(bend, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(name=names, a=predictions, b=predictions, t=st.floats(0, 1))
def test_losses_are_convex_and_not_negative(name, a, b, t):
    at = PAIR_LOSSES[name].of_margin
    middle = float(at(np.array(t * a + (1 - t) * b)))
    chord = t * float(at(np.array(a))) + (1 - t) * float(at(np.array(b)))
    assert 0 <= middle <= chord + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_a_better_ranked_pair_costs_less_up_to_the_margin(name):
    values = PAIR_LOSSES[name].of_margin(np.linspace(-5, 1, 61))
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_bend_lies_below_its_bound_and_reaches_it(name):
    loss = PAIR_LOSSES[name]
    bends = loss.bend(np.linspace(-6, 6, 2401))
    assert (bends >= 0).all()
    assert bends.max() == pytest.approx(loss.curvature_bound)


def test_derivatives_of_the_logistic_loss_are_bounded_as_the_paper_assumes():
    first, second = PAIR_LOSSES["logistic"].derivatives(np.array([-1e4, 1e4]), np.zeros(2))
    np.testing.assert_allclose(first, [-1, 0])
    np.testing.assert_allclose(second, [1, 0])


@pytest.mark.parametrize("name", ["hinge", None, 1, ["square"]])
def test_an_unknown_loss_is_refused(name):
    with pytest.raises(InputError, match=r"^loss must be one of \['squared_hinge', .*, got "):
        pair_loss_named(name)
