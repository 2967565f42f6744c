"""The z-step against minimisation number by number, for every loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.admm import best_z
from vertikal.losses.nonconvex import SMOOTH_LOSSES
from vertikal.solvers.loss_prox import loss_prox


@given(
    name=st.sampled_from(sorted(SMOOTH_LOSSES)),
    centre=st.floats(-30, 30),
    y=st.sampled_from([-1.0, 1.0]),
    rho=st.floats(0.02, 10),
    start=st.floats(-50, 50),
)
def test_it_is_the_minimum(name, centre, y, rho, start):
    if name == "sigmoid":
        rho = max(rho, 0.1)  # above its curvature, or there may be two minima
    loss = SMOOTH_LOSSES[name]
    one = np.ones((1, 1))
    z = loss_prox(loss, centre * one, y * one, one, rho, start * one)
    # L'(z) + ρ(z − c) = 0: the condition, sharper than any search for the value.
    slope = loss.derivative(z, y * one) + rho * (z - centre)
    assert abs(float(slope[0, 0])) < 1e-9
    assert float(z[0, 0]) == pytest.approx(best_z(name, centre, 0.0, y, rho), abs=2e-5)


def test_plain_newton_cycles_where_the_bracket_does_not():
    loss, rho, one = SMOOTH_LOSSES["logistic"], 0.05, np.ones((1, 1))
    z = centre = np.array([[-4.0]])
    for _ in range(100):
        slope = loss.derivative(z, one) + rho * (z - centre)
        z = z - slope / (loss.curvature(z, one) + rho)
    assert abs(float((loss.derivative(z, one) + rho * (z - centre))[0, 0])) > 0.01
    found = loss_prox(loss, centre, one, one, rho, centre)
    assert abs(float((loss.derivative(found, one) + rho * (found - centre))[0, 0])) < 1e-12


@pytest.mark.parametrize("name", sorted(SMOOTH_LOSSES))
def test_weights_divide_rho_and_no_weight_leaves_the_centre(name):
    loss = SMOOTH_LOSSES[name]
    generator = np.random.default_rng(0)
    centre, y = (
        generator.normal(size=(20, 2)),
        np.where(generator.uniform(size=(20, 2)) < 0.5, -1.0, 1.0),
    )
    start = np.zeros_like(centre)
    three = loss_prox(loss, centre, y, np.full_like(centre, 3.0), 1.5, start)
    one = loss_prox(loss, centre, y, np.ones_like(centre), 0.5, start)
    np.testing.assert_allclose(three, one, atol=1e-12)
    none = loss_prox(loss, centre, y, np.zeros_like(centre), 0.5, start)
    np.testing.assert_allclose(none, centre, atol=1e-15)
