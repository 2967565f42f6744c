"""Spectral measures: directions drawn party by party approximate the exact kernel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import cauchy, kstest, norm, t

from tests.naive.kernels import exact_kernel
from vertikal.errors import InputError
from vertikal.kernels.random_features import FourierMap
from vertikal.kernels.spectral import KERNELS, Matern, kernel_named
from vertikal.ring.integers import Ring

NAMES = sorted(KERNELS)
PARTIES = ([0, 1], [2], [3, 4])  # columns of three parties


def approximate_kernel(name, X, bandwidth, total, bits=16, seed=0):
    """ΦΦᵀ with directions and offsets that each party draws for itself."""
    kernel, ring = KERNELS[name], Ring(bits)
    public = np.random.default_rng([seed, len(PARTIES)])
    scalars = kernel.shared_scalars(public.random(total))
    phases = np.zeros((len(X), total), ring.dtype)
    for party, columns in enumerate(PARTIES):
        private = np.random.default_rng([seed, party])
        omega = kernel.directions(private.random((len(columns), total)), scalars) / bandwidth
        offsets = private.integers(0, 2**bits, total).astype(ring.dtype)
        if kernel.odd:
            offsets[:] = 3 << (bits - 2) if party == 0 else 0
        feature_map = FourierMap(ring, omega, offsets, total)
        phases += feature_map.local(X[:, columns])
    features = feature_map.decode(phases, np.float64)
    return features @ features.T


@pytest.mark.parametrize("bandwidth", [1.0, 2.5])
@pytest.mark.parametrize("name", NAMES)
def test_bias_mean_and_maximal_error(name, bandwidth):
    # The three numbers that scikit-learn asks of its kernel approximations.
    X = np.random.default_rng(1).normal(size=(30, 5))
    exact = exact_kernel(name, X, X, bandwidth)
    error = approximate_kernel(name, X, bandwidth, 20_000) - exact
    assert abs(error.mean()) < 0.006
    assert np.abs(error).mean() < 0.009
    assert np.abs(error).max() < 0.05


@pytest.mark.parametrize("bits", [8, 32])
def test_the_ring_hardly_costs(bits):
    X = np.random.default_rng(1).normal(size=(30, 5))
    error = approximate_kernel("gaussian", X, 2.0, 20_000, bits) - exact_kernel(
        "gaussian", X, X, 2.0
    )
    assert np.abs(error).mean() < 0.009


@pytest.mark.parametrize("name", ["laplace", "matern12", "matern32", "matern52"])
def test_no_kernel_passes_for_another(name):
    """The bounds above are tight enough to tell the kernels apart."""
    X = np.random.default_rng(1).normal(size=(30, 5))
    error = approximate_kernel("gaussian", X, 1.0, 20_000) - exact_kernel(name, X, X, 1.0)
    assert np.abs(error).max() > 0.05


@pytest.mark.parametrize(
    ("name", "law"),
    [("gaussian", norm), ("laplace", cauchy), ("matern12", t(1)), ("matern52", t(5))],
)
def test_each_coordinate_has_the_law_of_the_kernel(name, law):
    generator = np.random.default_rng(3)
    kernel = KERNELS[name]
    scalars = kernel.shared_scalars(generator.random(4000))
    coordinates = kernel.directions(generator.random((1, 4000)), scalars)
    assert kstest(coordinates[0], law.cdf).pvalue > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_only_matern_shares_and_only_a_scalar_per_direction(name):
    kernel = KERNELS[name]
    scalars = kernel.shared_scalars(np.linspace(0.1, 0.9, 7))
    assert kernel.shares_scalars == name.startswith("matern")
    if kernel.shares_scalars:
        assert scalars.shape == (7,)
        assert (scalars > 0).all()
    else:
        assert scalars is None


def test_matern_parties_have_one_scalar_in_common_and_nothing_else():
    kernel = KERNELS["matern32"]
    generator = np.random.default_rng(0)
    scalars = kernel.shared_scalars(generator.random(50))
    first = kernel.directions(generator.random((2, 50)), scalars)
    second = kernel.directions(generator.random((3, 50)), scalars)
    # Divided by the scalar, both are independent standard Gaussians.
    assert abs(np.corrcoef(first[0] / scalars, second[0] / scalars)[0, 1]) < 0.4
    gaussian = KERNELS["gaussian"]
    u = generator.random((2, 50))
    np.testing.assert_allclose(kernel.directions(u, scalars), gaussian.directions(u) * scalars)


def test_matern_without_its_scalars_is_refused():
    with pytest.raises(InputError, match=r"^scalars must be the shared numbers .*, got None$"):
        KERNELS["matern"].directions(np.full((1, 3), 0.3), None)


@pytest.mark.parametrize("nu", [0, -1, float("nan"), float("inf")])
def test_matern_needs_a_positive_smoothness(nu):
    with pytest.raises(InputError, match=r"^kernel: nu must be a positive number, got "):
        Matern(nu)


def test_distances_add_up_over_parties():
    gaps = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -0.5]])
    for name, whole in (
        ("gaussian", [14.0, 0.5]),
        ("laplace", [6.0, 1.0]),
        ("matern", [14.0, 0.5]),
    ):
        kernel = KERNELS[name]
        np.testing.assert_allclose(kernel.distances(gaps), whole)
        parts = kernel.distances(gaps[:, :1]) + kernel.distances(gaps[:, 1:])
        np.testing.assert_allclose(parts, whole)


def test_typical_bandwidth_by_hand():
    # A Gaussian kernel of σ² = d²/2 is exp(−1) at distance d; so is a Laplace kernel of σ = d.
    x, z = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    sigma = KERNELS["gaussian"].typical_bandwidth(25.0)
    np.testing.assert_allclose(exact_kernel("gaussian", x, z, sigma), np.exp(-1))
    sigma = KERNELS["laplace"].typical_bandwidth(7.0)
    np.testing.assert_allclose(exact_kernel("laplace", x, z, sigma), np.exp(-1))


@pytest.mark.parametrize("name", ["rbf", "", None, 3, ["gaussian"]])
def test_an_unknown_kernel_is_refused(name):
    with pytest.raises(InputError, match=r"^kernel must be one of \['gaussian', .*\], got "):
        kernel_named(name)


def test_matern_is_matern_three_halves():
    assert kernel_named("matern") == kernel_named("matern32") == Matern(1.5)
