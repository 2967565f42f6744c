"""feature_map="landmarks" through the estimators: every solver, several label parties, tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

from tests.naive.landmarks import kernel
from vertikal import FDSKLClassifier, FDSKLRegressor, Landmarks, Stochastic
from vertikal.errors import InputError

OPTIONS = {"parties": 3, "feature_map": "landmarks", "n_components": 64, "random_state": 0}


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"feature_map": Landmarks(bits=32)},
        {"label_parties": 2},
        {"masking": "trees"},
        {"loss": "square"},
        {"cache_size": "50kB"},
        {"solver": Stochastic(block_size=16, n_steps=60)},
        {"solver": Stochastic(block_size=16, n_steps=60, precondition=True)},
    ],
)
def test_every_solver_learns(cancer, options):
    X, y = cancer
    model = FDSKLClassifier(**{**OPTIONS, **options}).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.93
    assert "landmark" in str(model.ledger_)


def test_predictions_are_sums_over_the_kernel_with_the_landmarks(cancer):
    X, y = cancer
    model = FDSKLClassifier(**{**OPTIONS, "feature_map": Landmarks(bits=32), "bandwidth": 4.0}).fit(
        X[:300], y[:300]
    )
    leader = model.shards_["party1"]
    landmarks = np.concatenate(
        [shard.landmarks["party1"] for shard in model.shards_.values()], axis=1
    )
    assert landmarks.shape == (64, 30)
    # The landmarks are training rows, and each party has its own columns of them only.
    assert all((X[:300] == z).all(axis=1).any() for z in landmarks)
    assert leader.landmarks["party1"].shape == (64, len(model.columns_["party1"]))
    values = kernel(X[300:330], landmarks, 4.0) @ leader.coefficients + leader.constant
    assert model.decision_function(X[300:330]) == pytest.approx(values[:, 0], abs=1e-4)


def test_more_landmarks_than_rows_are_cut_to_the_rank(cancer):
    X, y = cancer
    model = FDSKLClassifier(**{**OPTIONS, "n_components": 150}).fit(X[:60], y[:60])
    assert np.isfinite(model.decision_function(X)).all()
    assert model.score(X[:60], y[:60]) > 0.95


def test_rows_that_repeat_do_not_break_the_factor():
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, (300, 4)).astype(float)
    y = X[:, 0] != X[:, 3]
    model = FDSKLClassifier(**{**OPTIONS, "parties": 2}).fit(X, y)
    assert model.score(X, y) == 1.0


def test_sparse_columns_give_the_same_model(cancer):
    X = np.where(np.abs(cancer[0]) < 0.5, 0, cancer[0])
    y = cancer[1]
    dense = FDSKLClassifier(**OPTIONS).fit(X, y)
    thin = FDSKLClassifier(**OPTIONS).fit(sparse.csr_array(X), y)
    assert dense.decision_function(X) == pytest.approx(thin.decision_function(X), abs=1e-6)


def test_regression():
    X, y = load_diabetes(return_X_y=True)
    model = FDSKLRegressor(**OPTIONS, scale="standard").fit(X[:350], y[:350])
    assert model.score(X[350:], y[350:]) > 0.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "laplace"}, "kernel must be 'gaussian' for landmarks"),
        ({"feature_map": {"name": "landmarks", "bits": 8}}, r"bits must be one of 16, 32, got 8"),
        ({"feature_map": "hashing"}, "feature_map must be one of 'fourier', 'landmarks'"),
    ],
)
def test_what_landmarks_cannot_do_is_refused(cancer, options, message):
    X, y = cancer
    with pytest.raises(InputError, match=message):
        FDSKLClassifier(**{**OPTIONS, **options}).fit(X, y)
