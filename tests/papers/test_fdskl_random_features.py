"""FDSKL eq. (2) and eq. (3): random features that no single party can compute."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.naive.kernels import exact_kernel
from tests.naive.phases import cosines
from tests.privacy.attacks.label_view import watching
from vertikal import FDSKLClassifier, Stochastic
from vertikal.kernels.random_features import FourierMap
from vertikal.kernels.spectral import kernel_named
from vertikal.ring.integers import Ring

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
    """E_b[2 cos(θ + b) cos(θ' + b)] = cos(θ − θ') over all offsets of the ring, whatever θ."""
    offsets = np.arange(2**12).astype(np.uint16) * np.uint16(2**4)
    feature_map = FourierMap(Ring(16), np.ones((1, 2**12)), offsets, 2**12)
    rows = np.array([[place], [place + distance]])
    one, other = feature_map.decode(feature_map.local(rows), np.float64)
    assert one @ other == pytest.approx(math.cos(distance), abs=1e-4)


GRID = (np.arange(20_000) + 0.5) / 20_000
"""Uniform numbers, evenly spread: a mean over them is an integral over the measure."""


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("distance", [0.0, 0.5, 2.0])
def test_eq_2_the_measure_that_is_drawn_from_gives_the_kernel(kernel, distance):
    """∫ cos(ω·δ) dP(ω) = K(δ), P being what the package turns uniform numbers into."""
    spectral = kernel_named(kernel)
    coarse = GRID[::20]
    scalars = spectral.shared_scalars(coarse)
    if scalars is None:
        omega = spectral.directions(GRID[None], None)
    else:
        # Every shared number with a spread of Gaussian ones.
        uniforms = np.repeat(coarse[:, None], len(coarse), axis=1)
        omega = spectral.directions(uniforms, scalars)
    found = np.cos(omega * distance).mean()
    expected = exact_kernel(kernel, np.zeros((1, 1)), np.full((1, 1), distance), 1.0)[0, 0]
    assert found == pytest.approx(expected, abs=2e-3)


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


@pytest.mark.parametrize("functions", ["cosine", "pair"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eq_3_by_the_features_that_the_package_makes(functions, dtype):
    """The map itself, its factor √(2/D) included: inner products are kernel values."""
    ring, total = Ring(16), 4096
    generator = np.random.default_rng(1)
    feature_map = FourierMap(
        ring,
        generator.normal(size=(6, total)) / 2.0,
        generator.integers(0, 2**16, total).astype(np.uint16),
        total,
        functions=functions,
    )
    features = feature_map.decode(feature_map.local(X), dtype).astype(float)
    error = features @ features.T - exact_kernel("gaussian", X, X, 2.0)
    assert abs(error.mean()) < 0.01
    assert np.abs(error).max() < 0.07
    coefficients = generator.normal(size=(features.shape[1], 1))
    phases = feature_map.local(X)
    np.testing.assert_allclose(
        feature_map.forward(phases, coefficients), features @ coefficients, atol=1e-4
    )
    residuals = generator.normal(size=(len(X), 1))
    np.testing.assert_allclose(
        feature_map.adjoint(phases, residuals), features.T @ residuals, atol=1e-4
    )


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
