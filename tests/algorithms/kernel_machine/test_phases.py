"""A limit on memory: the same model, with the missing phases summed again in each pass."""

from __future__ import annotations

import numpy as np
import pytest

from tests.privacy.attacks.label_view import watching
from vertikal import FDSKLClassifier, Fourier, Stochastic

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(200, 6))
Y = (X[:, 0] * X[:, 3] > 0).astype(int)
DIRECTIONS = 40


def fit(**settings):
    given = {
        "parties": 3,
        "n_components": DIRECTIONS,
        "random_state": 0,
        "bandwidth": 2.0,
        "timeout": 60,
        "tol": 1e-4,
        "alpha": 0.01,
    }
    return FDSKLClassifier(**(given | settings)).fit(X, Y)


def phase_bytes(model):
    return sum(e.bytes for e in model.ledger_.entries() if e.disclosure.name == "phases")


@pytest.mark.parametrize("label_parties", [1, 2, 3])
@pytest.mark.parametrize("cache_size", [1, 60 * DIRECTIONS, "5kB"])
def test_exact_finds_the_same_model(label_parties, cache_size):
    whole = fit(label_parties=label_parties)
    limited = fit(label_parties=label_parties, cache_size=cache_size)
    np.testing.assert_allclose(limited.decision_function(X), whole.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("solver", ["exact", Stochastic(block_size=8, batch_size=16)])
def test_several_features_of_each_phase_find_the_same_model(solver):
    settings = {"feature_map": Fourier(functions="pair", harmonics=(1, 3)), "solver": solver}
    whole, limited = fit(**settings), fit(cache_size=60 * DIRECTIONS, **settings)
    np.testing.assert_allclose(limited.decision_function(X), whole.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("label_parties", [1, 2, 3])
@pytest.mark.parametrize("precondition", [False, True])
def test_dsg_finds_the_same_model(label_parties, precondition):
    settings = {
        "solver": Stochastic(block_size=8, batch_size=16, precondition=precondition, step_size=0.3),
        "label_parties": label_parties,
    }
    whole = fit(**settings)
    limited = fit(cache_size=50 * DIRECTIONS, **settings)
    np.testing.assert_allclose(limited.decision_function(X), whole.decision_function(X), atol=1e-3)


def test_the_feature_parties_pay_for_what_is_not_kept():
    whole, half = fit(), fit(cache_size=100 * DIRECTIONS)
    passes = half.shards_["party1"].training.passes + 1  # and one for the preconditioner
    rows = phase_bytes(half) / (2 * DIRECTIONS)  # of two senders
    assert rows == pytest.approx(100 + 100 * passes, rel=0.2)
    assert phase_bytes(whole) == pytest.approx(2 * 200 * DIRECTIONS, rel=0.05)
    assert "requests" in {d.name for d in half.ledger_.disclosures()}
    assert "requests" not in {d.name for d in whole.ledger_.disclosures()}


@pytest.mark.parametrize("cache_size", [1, 70 * DIRECTIONS])
def test_no_more_than_the_limit_is_kept(cache_size):
    with watching() as views:
        fit(cache_size=cache_size)
    (view,) = views.values()
    assert cache_size - DIRECTIONS < view.phases.nbytes <= cache_size


def test_a_limit_that_is_large_enough_changes_nothing():
    whole, limited = fit(), fit(cache_size="1MB")
    np.testing.assert_array_equal(
        whole.shards_["party1"].coefficients, limited.shards_["party1"].coefficients
    )
    assert phase_bytes(whole) == phase_bytes(limited)
