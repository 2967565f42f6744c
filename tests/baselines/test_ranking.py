"""RankSVM against all pairs written down, and the sparse machine's greedy choice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

from tests.naive.pairwise import over_pairs
from vertikal.baselines.ranking import RankSVMClassifier, SparseKernelAUCClassifier
from vertikal.errors import InputError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 4))
Y = np.where(X[:, 0] * X[:, 1] + 0.4 * GENERATOR.normal(size=60) > 0.4, "yes", "no")
POSITIVE = Y == "yes"


@pytest.mark.parametrize("approximation", ["fourier", "nystroem"])
def test_ranksvm_is_the_minimum_over_all_pairs(approximation):
    model = RankSVMClassifier(
        approximation=approximation,
        n_components=20,
        gamma=0.3,
        alpha=0.05,
        tol=1e-8,
        random_state=0,
    ).fit(X, Y)
    features = model.sampler_.transform(X)

    def value(w):
        loss, slope = over_pairs("squared_hinge", features @ w, POSITIVE, np.ones(60))
        return loss + 0.025 * w @ w, features.T @ slope + 0.05 * w

    best = minimize(value, np.zeros(features.shape[1]), jac=True, options={"gtol": 1e-9})
    assert model.objective_ == pytest.approx(best.fun, rel=1e-8)
    np.testing.assert_allclose(model.decision_function(X), features @ best.x, atol=1e-4)
    assert (model.predict(X) == "yes").sum() == pytest.approx(POSITIVE.sum(), abs=1)


def test_nystroem_with_all_rows_is_the_kernel_itself():
    model = RankSVMClassifier(
        approximation="nystroem", n_components=60, gamma=0.3, random_state=0
    ).fit(X, Y)
    features = model.sampler_.transform(X)
    np.testing.assert_allclose(features @ features.T, rbf_kernel(X, gamma=0.3), atol=1e-8)


def test_the_sparse_machine_adds_the_row_that_the_gradient_points_at():
    model = SparseKernelAUCClassifier(
        n_basis=1, candidates=60, gamma=0.3, alpha=0.01, random_state=0
    ).fit(X, Y)
    _, slope = over_pairs("squared_hinge", np.zeros(60), POSITIVE, np.ones(60))
    kernel = rbf_kernel(X, gamma=0.3)
    gains = np.abs(slope @ kernel) / np.linalg.norm(kernel, axis=0)
    assert model.support_.tolist() == [int(np.argmax(gains))]


def test_the_sparse_machine_is_sparse_and_ranks():
    X = GENERATOR.normal(size=(500, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = SparseKernelAUCClassifier(n_basis=25, gamma=0.5, random_state=0).fit(X[:300], y[:300])
    assert len(set(model.support_.tolist())) == len(model.coefficients_) == 25
    assert roc_auc_score(y[300:], model.decision_function(X[300:])) > 0.85
    fewer = SparseKernelAUCClassifier(n_basis=5, gamma=0.5, random_state=0).fit(X[:300], y[:300])
    assert fewer.objective_ > model.objective_


def test_wrong_input():
    with pytest.raises(InputError, match="approximation must be one of"):
        RankSVMClassifier(approximation="exact").fit(X, Y)
    with pytest.raises(InputError, match="y must be of two classes"):
        RankSVMClassifier().fit(X, np.arange(60) % 3)
