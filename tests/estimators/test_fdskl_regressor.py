"""FDSKLRegressor: units, weights and quality."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from tests.options import grouped
from vertikal import FDSKLRegressor, Stochastic

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-2, 2, size=(200, 4))
NEW = GENERATOR.uniform(-2, 2, size=(50, 4))


def truth(rows):
    return np.sin(rows[:, 0]) * rows[:, 2]


Y = truth(X)


def make(**settings):
    given = {
        "parties": 2,
        "n_components": 128,
        "random_state": 0,
        "bandwidth": 2.0,
        "tol": 1e-8,
        "alpha": 1e-4,
        "feature_map__bits": 16,
    }
    return FDSKLRegressor(**grouped(**(given | settings)))


def test_it_is_close_to_kernel_ridge_regression():
    model = make(n_components=1024).fit(X, Y)
    # (1/n)Σ(u − y)² + λ/2‖f‖² is ridge regression with α = nλ/2.
    ridge = KernelRidge(alpha=200 * 1e-4 / 2, kernel="rbf", gamma=1 / 8).fit(X, Y - Y.mean())
    gap = model.predict(NEW) - (ridge.predict(NEW) + Y.mean())
    assert np.sqrt(np.mean(gap**2)) < 0.1 * np.std(Y)
    assert model.score(NEW, truth(NEW)) > 0.95


@pytest.mark.parametrize(("factor", "shift"), [(1e6, -3e7), (1e-6, 5.0)])
@pytest.mark.parametrize("label_parties", [1, 2])
def test_the_unit_of_the_targets_does_not_matter(factor, shift, label_parties):
    model = make(label_parties=label_parties, tol=1e-5)
    plain = model.fit(X, Y).predict(NEW)
    moved = model.fit(X, factor * Y + shift).predict(NEW)
    np.testing.assert_allclose((moved - shift) / factor, plain, atol=1e-3)


def test_constant_targets_are_predicted():
    model = make().fit(X, np.full(200, 7.5))
    np.testing.assert_allclose(model.predict(NEW), 7.5)


def test_rows_of_weight_two_are_rows_that_occur_twice():
    weights = np.ones(200)
    weights[:70] = 2
    weighted = make().fit(X, Y, weights)
    copied = make().fit(np.vstack([X, X[:70]]), np.concatenate([Y, Y[:70]]))
    np.testing.assert_allclose(weighted.predict(NEW), copied.predict(NEW), atol=1e-6)


def test_the_stochastic_solver_regresses_too():
    model = make(solver=Stochastic(block_size=32, batch_size=64, n_steps=200, step_size=0.3)).fit(
        X, Y
    )
    assert model.score(NEW, truth(NEW)) > 0.7


def test_whole_number_targets():
    y = np.round(Y * 10).astype(int)
    np.testing.assert_array_equal(
        make().fit(X, y).predict(NEW), make().fit(X, y.astype(float)).predict(NEW)
    )
