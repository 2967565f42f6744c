"""The accountant against integrals, an independent library, and the paper's own formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from vertikal.errors import InputError
from vertikal.privacy.accountant import (
    corollary1,
    corollary1_round,
    delta_of,
    epsilon_of,
    mu_of,
    theorem3_deviation,
    tight_deviation,
)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 5.0])
def test_delta_is_the_integral_of_what_exceeds(mu, epsilon):
    x = np.linspace(-14, 17, 1_000_001)
    excess = np.maximum(norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x), 0)
    assert delta_of(mu, epsilon) == pytest.approx(np.trapezoid(excess, x), rel=1e-5, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_epsilon_and_mu_undo_delta(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert delta_of(mu, epsilon) <= delta
    assert delta_of(1.0001 * mu, epsilon) > delta
    assert epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-6)
    assert delta_of(mu, epsilon_of(mu, delta)) <= delta


def test_the_ends():
    assert delta_of(0.0, 1.0) == 0
    assert epsilon_of(1e-6, 0.1) == 0
    assert epsilon_of(1e9, 1e-5) == math.inf


@pytest.mark.parametrize(("rounds", "sigma"), [(1, 2.0), (20, 5.0), (200, 40.0)])
def test_rounds_compose_as_an_independent_library_says(rounds, sigma):
    dp = pytest.importorskip("dp_accounting", reason="extra 'dp'")
    pld = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant")
    accountant = pld.PLDAccountant()
    accountant.compose(dp.GaussianDpEvent(sigma), rounds)
    ours = epsilon_of(math.sqrt(rounds) / sigma, 1e-5)
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=2e-3)


def test_the_tight_noise_is_smaller_than_the_papers():
    epsilon, delta, rounds = 2.0, 1e-5, 20
    tight = tight_deviation(epsilon, delta, rounds, 3.0)
    one, small = corollary1_round(epsilon, delta, rounds)
    published = theorem3_deviation(one, small, 3.0)
    assert tight < published / 1.3
    assert epsilon_of(3.0 * math.sqrt(rounds) / tight, delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_no_epsilon(epsilon):
    with pytest.raises(InputError, match=r"^epsilon must be a positive number"):
        mu_of(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1])
def test_no_delta(delta):
    with pytest.raises(InputError, match=r"^delta must be between 0 and 1"):
        corollary1_round(1.0, delta, 5)


def test_a_round_that_theorem_3_does_not_cover():
    with pytest.raises(InputError, match=r"^epsilon must be in \(0, 1\] for each round"):
        theorem3_deviation(1.5, 1e-5, 1.0)
    assert corollary1_round(1e6, 1e-5, 3)[0] == 1.0
    assert corollary1(0.1, 1e-6, 10, 1e-5)[1] == pytest.approx(2e-5)
