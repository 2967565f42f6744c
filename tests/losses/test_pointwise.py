"""Losses: derivatives against finite differences, convexity, best constants, probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tests.naive.losses import PLAIN
from vertikal.errors import InputError
from vertikal.losses.pointwise import LOSSES, loss_named

NAMES = sorted(LOSSES)
predictions = st.floats(-30, 30)
labels = st.sampled_from([-1.0, 1.0])
names = st.sampled_from(NAMES)


def at(method, u, y):
    return float(method(np.array([u]), np.array([y]))[0])


@settings(deadline=None)
@given(name=names, u=predictions, y=labels)
def test_values_and_derivatives_equal_the_plain_ones(name, u, y):
    value, derivative = PLAIN[name](u, y)
    assert at(LOSSES[name].value, u, y) == pytest.approx(value, rel=1e-12, abs=1e-14)
    assert at(LOSSES[name].derivative, u, y) == pytest.approx(derivative, rel=1e-12, abs=1e-14)


@settings(deadline=None)
@given(name=names, u=predictions, y=labels)
def test_first_derivative_against_finite_differences(name, u, y):
    loss, h = LOSSES[name], 1e-5
    slope = (at(loss.value, u + h, y) - at(loss.value, u - h, y)) / (2 * h)
    assert at(loss.derivative, u, y) == pytest.approx(slope, rel=1e-6, abs=2e-5)


@settings(deadline=None)
@given(name=names, u=predictions, y=labels)
def test_second_derivative_against_finite_differences(name, u, y):
    loss, h = LOSSES[name], 1e-5
    if name == "smooth_hinge" and min(abs(y * u), abs(y * u - 1)) <= h:
        u = 0.5 * y  # away from its two kinks, where L'' jumps
    bend = (at(loss.derivative, u + h, y) - at(loss.derivative, u - h, y)) / (2 * h)
    assert at(loss.curvature, u, y) == pytest.approx(bend, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(name=names, u=predictions, v=predictions, t=st.floats(0, 1), y=labels)
def test_losses_are_convex_and_not_negative(name, u, v, t, y):
    value = LOSSES[name].value
    middle = at(value, t * u + (1 - t) * v, y)
    assert 0 <= middle <= t * at(value, u, y) + (1 - t) * at(value, v, y) + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_curvature_lies_below_its_bound_and_reaches_it(name):
    loss = LOSSES[name]
    u = np.linspace(-6, 6, 2401)
    for y in (-1.0, 1.0):
        bends = loss.curvature(u, np.full_like(u, y))
        assert (bends >= 0).all()
        assert bends.max() == pytest.approx(loss.curvature_bound)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.6, 0.99])
def test_the_constant_minimises_the_mean_loss(name, share):
    loss = LOSSES[name]

    def mean(u):
        return share * at(loss.value, u, 1.0) + (1 - share) * at(loss.value, u, -1.0)

    best = minimize_scalar(mean, bounds=(-20, 20), method="bounded", options={"xatol": 1e-10})
    assert mean(loss.constant(share)) <= best.fun + 1e-12
    if share != 0.5:
        assert mean(loss.constant(share)) < mean(0.0)


@settings(deadline=None)
@given(name=names, u=st.floats(allow_nan=False, allow_infinity=False))
def test_probabilities_lie_between_0_and_1(name, u):
    chance = LOSSES[name].probability(np.array([u]))
    if name == "smooth_hinge":
        assert chance is None
    else:
        assert 0 <= chance[0] <= 1


@pytest.mark.parametrize("name", ["logistic", "square"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_the_best_constant_predicts_the_share(name, share):
    loss = LOSSES[name]
    assert loss.probability(np.array([loss.constant(share)]))[0] == pytest.approx(share)


@pytest.mark.parametrize("u", [-1e4, 1e4])
def test_logistic_far_out_is_linear_or_nothing_and_never_overflows(u):
    loss = LOSSES["logistic"]
    assert at(loss.value, u, 1.0) == pytest.approx(max(0.0, -u))
    assert at(loss.derivative, u, 1.0) == pytest.approx(-1.0 if u < 0 else 0.0)
    assert at(loss.curvature, u, 1.0) == 0.0


def test_losses_keep_the_shape_of_several_outputs():
    u, y = np.zeros((4, 3)), np.ones((4, 3))
    for loss in LOSSES.values():
        for method in (loss.value, loss.derivative, loss.curvature):
            assert method(u, y).shape == (4, 3)


def test_regression_takes_the_square_loss_only():
    assert loss_named("square", regression=True).regression
    with pytest.raises(InputError, match=r"^loss must be one of \['square'\], got 'logistic'$"):
        loss_named("logistic", regression=True)


@pytest.mark.parametrize("name", ["hinge", None, 1, ["square"]])
def test_an_unknown_loss_is_refused(name):
    with pytest.raises(InputError, match=r"^loss must be one of \['square', 'logistic', .*, got "):
        loss_named(name, regression=False)
