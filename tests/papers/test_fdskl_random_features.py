"""FDSKL eq. (2) and eq. (3): random features that no single party can compute."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from tests.naive.kernels import exact_kernel
from tests.naive.phases import cosines
from tests.privacy.attacks.label_view import watching
from vertikal import FDSKLClassifier, Stochastic

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(25, 6))
Y = np.arange(25) % 2


def held_phases(**settings):
    """Fit, and hand out the phases that each label party holds afterwards."""
    given = {"parties": 3, "random_state": 0, "bandwidth": 2.0, "solver": Stochastic(n_steps=1)}
    with watching() as views:
        model = FDSKLClassifier(**given, **settings).fit(X, Y)
    return model, {name: view.phases for name, view in views.items()}


@pytest.mark.parametrize("distance", [0.0, 0.4, 1.7])
@pytest.mark.parametrize("place", [0.0, 0.9])
def test_eq_2_the_offset_makes_the_mean_of_products_a_cosine(distance, place):
    """E_b[2 cos(θ + b) cos(θ' + b)] = cos(θ − θ'), whatever θ."""

    def product(b):
        return 2 * math.cos(place + distance + b) * math.cos(place + b) / (2 * math.pi)

    assert quad(product, 0, 2 * math.pi)[0] == pytest.approx(math.cos(distance))


@pytest.mark.parametrize("distance", [0.0, 0.5, 2.0])
def test_eq_2_the_gaussian_measure_gives_the_gaussian_kernel(distance):
    def integrand(omega):
        return math.cos(omega * distance) * math.exp(-(omega**2) / 2) / math.sqrt(2 * math.pi)

    assert quad(integrand, -12, 12)[0] == pytest.approx(math.exp(-(distance**2) / 2))


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("masking", ["pads", "trees"])
def test_eq_3_the_label_party_holds_features_of_the_joint_kernel(kernel, masking):
    model, caches = held_phases(kernel=kernel, n_components=8192, masking=masking)
    features = cosines(caches["party1"])  # φ_ω(x) = √2·cos(ωᵀx + b)
    error = features @ features.T / 8192 - exact_kernel(kernel, X, X, 2.0)
    assert abs(error.mean()) < 0.01
    assert np.abs(error).mean() < 0.015
    assert np.abs(error).max() < 0.07
    assert model.bandwidth_ == 2.0


def test_eq_3_over_several_label_parties():
    _, caches = held_phases(n_components=6000, label_parties=["party3", "party1"])
    assert set(caches) == {"party1", "party3"}
    features = np.hstack([cosines(phases) for phases in caches.values()])
    error = features @ features.T / 6000 - exact_kernel("gaussian", X, X, 2.0)
    assert np.abs(error).max() < 0.07


def test_eq_3_the_error_falls_with_the_square_root_of_the_number_of_features():
    exact, errors = exact_kernel("gaussian", X, X, 2.0), []
    for total in (256, 4096):
        _, caches = held_phases(n_components=total)
        features = cosines(caches["party1"])
        errors.append(np.sqrt(np.mean(np.square(features @ features.T / total - exact))))
    assert 2.5 < errors[0] / errors[1] < 6.5
