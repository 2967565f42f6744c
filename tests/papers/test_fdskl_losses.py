"""FDSKL Table 1: smooth losses for binary classification and regression, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vertikal.losses.pointwise import LOSSES

# (loss, u, y, L(u, y), L'(u, y)); the smooth hinge in each of its three pieces and at both seams.
TABLE = [
    ("square", 3.0, 1.0, 4.0, 4.0),
    ("square", -0.5, 1.0, 2.25, -3.0),
    ("square", 2.5, 2.5, 0.0, 0.0),
    ("logistic", 0.0, 1.0, math.log(2), -0.5),
    ("logistic", 0.0, -1.0, math.log(2), 0.5),
    ("logistic", math.log(3), 1.0, math.log(4 / 3), -0.25),
    ("logistic", math.log(3), -1.0, math.log(4), 0.75),
    ("smooth_hinge", -2.0, 1.0, 2.5, -1.0),
    ("smooth_hinge", 0.0, 1.0, 0.5, -1.0),
    ("smooth_hinge", 0.5, 1.0, 0.125, -0.5),
    ("smooth_hinge", 1.0, 1.0, 0.0, 0.0),
    ("smooth_hinge", 4.0, 1.0, 0.0, 0.0),
    ("smooth_hinge", 2.0, -1.0, 2.5, 1.0),
    ("smooth_hinge", -0.25, -1.0, 0.28125, 0.75),
]


@pytest.mark.parametrize(("name", "u", "y", "value", "derivative"), TABLE)
def test_table_1_by_hand(name, u, y, value, derivative):
    loss = LOSSES[name]
    assert loss.value(np.array([u]), np.array([y]))[0] == pytest.approx(value, abs=1e-15)
    assert loss.derivative(np.array([u]), np.array([y]))[0] == pytest.approx(derivative, abs=1e-15)


def test_these_are_all_losses_and_their_tasks():
    assert {name: loss.regression for name, loss in LOSSES.items()} == {
        "square": True,
        "logistic": False,
        "smooth_hinge": False,
    }


@pytest.mark.parametrize("seam", [0.0, 1.0])
def test_the_smooth_hinge_has_no_seams_in_value_and_slope(seam):
    loss, one = LOSSES["smooth_hinge"], np.ones(2)
    sides = np.array([seam - 1e-9, seam + 1e-9])
    assert np.ptp(loss.value(sides, one)) < 1e-8
    assert np.ptp(loss.derivative(sides, one)) < 1e-8


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_losses_of_a_margin_do_not_know_the_sign(name):
    """For classification L(u, y) depends on yu only; so the square loss, where y² = 1."""
    u = np.linspace(-3, 3, 13)
    loss, one = LOSSES[name], np.ones(13)
    np.testing.assert_allclose(loss.value(u, one), loss.value(-u, -one))
    np.testing.assert_allclose(loss.derivative(u, one), -loss.derivative(-u, -one))
