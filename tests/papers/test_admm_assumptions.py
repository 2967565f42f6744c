"""ADMM Assumption 1, item by item, on columns whose eigenvalues are known."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.algorithms.admm.assumptions import assumptions
from vertikal.algorithms.admm.settings import AdmmSettings
from vertikal.solvers.design import Design


def held(eigenvalues, rho, penalty, **settings):
    """Of columns with 𝒟ᵀ𝒟 = diag(eigenvalues)."""
    given = AdmmSettings(parties=("a", "b"), label_parties=("a",), averaging=False, **settings)
    return assumptions(Design(np.diag(np.sqrt(eigenvalues))), given, rho, penalty)


def test_assumption_1_by_hand():
    """Logistic loss, L = 1/4: 2 (c) is ρ² > 2L² = 1/8; 2 (b) is ρσ_min + λ ≥ 2σ_max."""
    assert held([1.0, 4.0], 0.36, 1.0)["rho"]
    assert not held([1.0, 4.0], 0.35, 1.0)["rho"]
    assert held([1.0, 4.0], 0.5, 7.5)["x-step"]
    assert not held([1.0, 4.0], 0.5, 7.4)["x-step"]
    assert not held([1.0, 4.0], 0.5, 4.0)["x-step"]
    assert held([4.0, 4.0], 2.0, 0.0)["x-step"]
    assert held([1.0, 4.0], 0.5, 0.0)["full column rank"]
    assert not held([0.0, 4.0], 0.5, 0.0)["full column rank"]


def test_a_loss_that_is_not_convex_leaves_less_room():
    """γ(ρ) = ρ − L: ρ(ρ − L) > 2L² asks for ρ > 2L."""
    L = held_curvature()
    assert not held([1.0], 1.99 * L, 0.0, loss="sigmoid")["rho"]
    assert held([1.0], 2.01 * L, 0.0, loss="sigmoid")["rho"]


def held_curvature():
    """The largest second derivative of the sigmoid loss 1/(1 + e^u): √3/18."""
    return np.sqrt(3) / 18


def test_that_curvature_is_the_sigmoid_losss():
    u = np.linspace(-6, 6, 100_001)
    values = 1 / (1 + np.exp(u))
    bend = np.gradient(np.gradient(values, u), u)
    assert np.abs(bend).max() == pytest.approx(held_curvature(), rel=1e-4)
