"""FDSKL Theorem 4: the stochastic rule comes to the minimum, up to a floor that its step sets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.naive.pooled import pooled_coefficients, pooled_features
from tests.naive.solver import minimise
from vertikal import AVFKAMClassifier, FDSKLClassifier, Stochastic
from vertikal.algorithms.kernel_machine.stochastic.published_bound import steps_of_theorem4

ROWS = 60
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 4))
Y = (X[:, 0] * X[:, 2] + 0.5 * GENERATOR.normal(size=ROWS) > 0).astype(int)
SIGNS = np.where(Y == 1, 1.0, -1.0)[:, None]


def gap(step, penalty, steps, seed):
    """(mean over rows of |f_t − f*|², that of |f*|²), f* the minimum on the same features."""
    solver = Stochastic(step_size=step, n_steps=steps, batch_size=4, block_size=8)
    model = FDSKLClassifier(
        2, n_components=16, alpha=penalty, bandwidth=1.5, random_state=seed, solver=solver
    ).fit(X, Y)
    features = pooled_features(model, X)
    best = minimise(features, SIGNS, np.ones(ROWS), "logistic", penalty, np.zeros(1))
    missed = features @ (best - pooled_coefficients(model))
    return np.square(missed).mean(), np.square(features @ best).mean()


def floor(step, penalty, seeds=range(6)):
    """The mean gap after so many steps that the beginning is forgotten: (1 − γλ)^t = e^−5."""
    return np.mean([gap(step, penalty, round(5 / (step * penalty)), seed)[0] for seed in seeds])


def test_a_small_step_comes_to_the_minimum():
    missed, size = gap(0.025, 0.05, 3000, 1)
    assert missed < 0.06 * size
    early, _ = gap(0.025, 0.05, 100, 1)
    assert early > 5 * missed


@pytest.mark.slow
def test_the_floor_is_proportional_to_the_step_over_the_penalty():
    """Lemma 3 of the appendix: a quarter of the step leaves about a quarter of the error.

    A larger penalty lowers it too, but here not beyond what the loss itself pulls back.
    """
    high, middle, low = (floor(step, 0.05) for step in (0.4, 0.1, 0.025))
    assert 1.8 < high / middle < 8
    assert 3 < middle / low < 14
    assert 8 < high / low < 40
    assert floor(0.1, 0.05) > 2 * floor(0.1, 0.2)


@pytest.mark.slow
def test_avfkam_comes_to_the_minimum_under_a_bounded_delay():
    """Two label parties that do not wait, no reading older than four updates of the other."""
    common = {"parties": 2, "label_parties": 2, "n_components": 16, "alpha": 0.1}
    common |= {"bandwidth": 1.5, "random_state": 0, "validation": 0.0, "loss": "square"}
    exact = AVFKAMClassifier(**common, tol=1e-9).fit(X, Y)
    best = pooled_coefficients(exact)

    def missed(steps):
        solver = Stochastic(
            schedule="async",
            step_size=0.01,
            n_steps=steps,
            batch_size=16,
            block_size=8,
            max_staleness=4,
        )
        model = AVFKAMClassifier(**common, solver=solver).fit(X, Y)
        assert max(age for ages in model.staleness_.values() for age in ages) <= 4
        return np.square(pooled_coefficients(model) - best).sum() / np.square(best).sum()

    late = missed(3000)
    assert late < 0.05
    assert missed(100) > 4 * late


def test_theorem_4_with_the_constants_of_the_gaussian_kernel_and_the_logistic_loss():
    """κ = 1, φ = 2, M = 1: worked by hand for λ = 1, and vacuous where anybody would train."""
    root = math.sqrt(2)
    second = (1 + root) / 2
    B = (math.sqrt(second**2 + 2) + second) ** 2
    by_hand = 8 * B * math.log(8 * 2 * math.log(2) / 0.5) / 0.5
    assert steps_of_theorem4(1.0, 0.5) == pytest.approx(by_hand)
    assert 400 < by_hand < 600
    # λ = 0.1/n for a9a's rows, predictions to a tenth: more steps than there were seconds ever.
    assert steps_of_theorem4(0.1 / 32_561, 0.01) > 1e26
