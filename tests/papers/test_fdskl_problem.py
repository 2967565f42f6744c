"""FDSKL eq. (1): what the training program minimises, with λ as the user gave it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.naive.losses import PLAIN
from tests.naive.pooled import pooled_coefficients, pooled_features
from tests.naive.solver import minimise, objective
from vertikal import FDSKLClassifier

ROWS = 50
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 5))
Y = (X[:, 0] * X[:, 3] + 0.2 * GENERATOR.normal(size=ROWS) > 0.4).astype(int)
SIGNS = np.where(Y == 1, 1.0, -1.0)[:, None]
WEIGHTS = GENERATOR.integers(1, 5, ROWS).astype(float)


def fitted(label_parties=1, weights=None, **settings):
    return FDSKLClassifier(
        3, label_parties=label_parties, n_components=24, tol=1e-6, random_state=0, **settings
    ).fit(X, Y, weights)


def best_constant(loss, weights):
    """The best f that is the same for all rows, to which the solver adds a function of x."""

    def mean(constant):
        values = [PLAIN[loss](constant, sign)[0] for sign in SIGNS[:, 0].tolist()]
        return float(weights @ np.array(values))

    return np.array([minimize_scalar(mean, options={"xtol": 1e-12}).x])


@pytest.mark.parametrize("label_parties", [1, 2])
@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
@pytest.mark.parametrize("penalty", [0.003, 0.1])
def test_eq_1_the_trained_model_is_the_minimum(loss, penalty, label_parties):
    """(1/n) Σ L + λ/2 ‖f‖², λ being the number that was asked for, not one the model reports."""
    model = fitted(label_parties, WEIGHTS, alpha=penalty, loss=loss)
    features = pooled_features(model, X)
    constant = best_constant(loss, WEIGHTS)
    np.testing.assert_allclose(model.shards_["party1"].constant, constant, atol=1e-5)
    best = minimise(features, SIGNS, WEIGHTS, loss, penalty, constant)
    np.testing.assert_allclose(pooled_coefficients(model), best, atol=2e-4)
    value, _ = objective(best[:, 0], features, SIGNS[:, 0], WEIGHTS, loss, penalty, constant[0])
    assert model.objective_[-1] == pytest.approx(value, rel=1e-6)
    assert np.abs(best).max() > 0.05


def test_eq_1_the_automatic_penalty():
    """0.1 over the number of rows, or over the sum of their weights."""
    assert fitted().alpha_ == pytest.approx(0.1 / ROWS)
    assert fitted(weights=WEIGHTS).alpha_ == pytest.approx(0.1 / WEIGHTS.sum())
    features, constant = pooled_features(fitted(), X), best_constant("logistic", np.ones(ROWS))
    best = minimise(features, SIGNS, np.ones(ROWS), "logistic", 0.1 / ROWS, constant)
    np.testing.assert_allclose(pooled_coefficients(fitted()), best, atol=1e-3)
