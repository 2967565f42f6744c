"""The median bandwidth, found federatedly, is the median that a pooled table would give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from tests.naive.kernels import euclidean
from vertikal import FDSKLClassifier, FDSKLRegressor, Stochastic
from vertikal.errors import InputError
from vertikal.kernels.bandwidth import sample_pairs

X = np.random.default_rng(0).normal(2, 1, (40, 5)) * [1, 10, 0.1, 3, 1]
Y = np.arange(40) % 2


def fit(values, weights=None, **settings):
    given = {"parties": 3, "n_components": 8, "solver": Stochastic(n_steps=1), "random_state": 0}
    return FDSKLClassifier(**(given | settings)).fit(values, Y[: values.shape[0]], weights)


def plain_median(values, kernel, pairs=None):
    """The lower median over pairs of different rows."""
    pairs = itertools.combinations(range(len(values)), 2) if pairs is None else pairs
    if kernel == "laplace":
        found = sorted(float(np.abs(values[i] - values[j]).sum()) for i, j in pairs)
        return found[(len(found) - 1) // 2]
    found = sorted(euclidean(values[i], values[j]) for i, j in pairs)
    return found[(len(found) - 1) // 2] / np.sqrt(2)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "matern32"])
@pytest.mark.parametrize("label_parties", [1, ["party3"], 2])
@pytest.mark.parametrize("masking", ["pads", "trees"])
def test_the_federated_median_is_the_plain_one(kernel, label_parties, masking):
    if masking == "trees" and label_parties == 2:
        label_parties = 3
    model = fit(X, kernel=kernel, label_parties=label_parties, masking=masking)
    assert model.bandwidth_ == pytest.approx(plain_median(X, kernel), rel=1e-9)
    assert {shard.bandwidth for shard in model.shards_.values()} == {model.bandwidth_}


def test_in_the_scaled_columns():
    model = fit(X, scale="standard")
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert model.bandwidth_ == pytest.approx(plain_median(scaled, "gaussian"), rel=1e-9)


def test_sparse_columns():
    thin = X * (np.random.default_rng(1).random(X.shape) < 0.5)
    assert fit(sparse.csr_array(thin)).bandwidth_ == fit(thin).bandwidth_


def test_a_public_sample_where_there_are_many_rows():
    values = np.random.default_rng(2).normal(size=(90, 4))
    model = FDSKLRegressor(
        parties=2, n_components=8, solver=Stochastic(n_steps=1), random_state=5, bandwidth="median"
    ).fit(values, values[:, 0])
    pairs = sample_pairs(90, model.settings_.seed)
    assert len(pairs) < 90 * 89 / 2
    expected = plain_median(values, "gaussian", pairs.tolist())
    assert model.bandwidth_ == pytest.approx(expected, rel=1e-9)


def test_rows_of_weight_two_count_as_two_rows():
    weights = np.ones(40)
    weights[:15] = 2
    twice = np.vstack([X, X[:15]])
    labels = np.concatenate([Y, Y[:15]])
    copies = FDSKLClassifier(
        parties=3, n_components=8, solver=Stochastic(n_steps=1), random_state=0
    ).fit(twice, labels)
    assert fit(X, weights).bandwidth_ == pytest.approx(copies.bandwidth_, rel=1e-12)
    assert fit(X, weights).bandwidth_ != fit(X).bandwidth_


def test_a_number_is_taken_as_it_is_and_nothing_is_sent_for_it():
    model = fit(X, bandwidth=np.float32(1.25))
    assert model.bandwidth_ == 1.25
    names = {disclosure.name for disclosure in model.ledger_.disclosures()}
    assert {"distances", "bandwidth"}.isdisjoint(names)
    assert {"distances", "bandwidth"} <= {d.name for d in fit(X).ledger_.disclosures()}


@pytest.mark.parametrize("unit", [1e-7, 1e-3, 1e4])
def test_the_unit_of_the_columns_does_not_matter(unit):
    values = np.random.default_rng(3).normal(size=(40, 5))
    model = fit(values * unit)
    assert model.bandwidth_ == pytest.approx(plain_median(values, "gaussian") * unit, rel=1e-6)


def test_distances_below_fixed_point_are_not_called_equal_without_a_remedy():
    with pytest.raises(InputError, match=r"^bandwidth: 'median' needs .* scale the columns"):
        fit(X * 1e-15)


def test_rows_that_do_not_differ_are_refused():
    values = np.zeros((6, 4))
    values[0] = 1.0
    weights = np.ones(6)
    weights[0] = 0
    with pytest.raises(InputError, match=r"^bandwidth: 'median' needs rows that differ"):
        fit(values, weights)
