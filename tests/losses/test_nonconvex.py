"""The sigmoid loss: derivatives, bound of the curvature, and that it is not convex."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive.losses import PLAIN
from vertikal.errors import InputError
from vertikal.losses.nonconvex import NOT_CONVEX, SMOOTH_LOSSES, smooth_loss_named

LOSS = SMOOTH_LOSSES["sigmoid"]
U = np.linspace(-8, 8, 3201)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_derivatives_against_finite_differences_and_the_plain_loss(y):
    h, labels = 1e-5, np.full_like(U, y)
    slope = (LOSS.value(U + h, labels) - LOSS.value(U - h, labels)) / (2 * h)
    bend = (LOSS.derivative(U + h, labels) - LOSS.derivative(U - h, labels)) / (2 * h)
    np.testing.assert_allclose(LOSS.derivative(U, labels), slope, atol=1e-9)
    np.testing.assert_allclose(LOSS.curvature(U, labels), bend, atol=1e-9)
    plain = np.array([PLAIN["sigmoid"](u, y) for u in U])
    np.testing.assert_allclose(LOSS.value(U, labels), plain[:, 0], atol=1e-14)
    np.testing.assert_allclose(LOSS.derivative(U, labels), plain[:, 1], atol=1e-14)


def test_the_curvature_reaches_its_bound_on_both_sides():
    bends = LOSS.curvature(U, np.ones_like(U))
    assert bends.max() == pytest.approx(LOSS.curvature_bound, rel=1e-4)
    assert bends.min() == pytest.approx(-LOSS.curvature_bound, rel=1e-4)
    assert "sigmoid" in NOT_CONVEX
    assert LOSS.constant(0.3) == 0
    assert LOSS.probability(U) is None


def test_an_unknown_loss_is_refused():
    allowed = r"\['square', 'logistic', 'smooth_hinge', 'sigmoid'\]"
    with pytest.raises(InputError, match=rf"^loss must be one of {allowed}, got 'hinge'$"):
        smooth_loss_named("hinge", regression=False)
    with pytest.raises(InputError, match=r"^loss must be one of \['square'\], got 'sigmoid'$"):
        smooth_loss_named("sigmoid", regression=True)
