"""The mean or median bandwidth, found federatedly, is that of a pooled table; what it shows."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse

from tests.naive.kernels import euclidean, mean_distance_of_all_pairs
from tests.privacy.attacks.label_view import train
from vertikal import AVFKAMClassifier, FDSKLClassifier, FDSKLRegressor, Stochastic
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings, FdsklSettings
from vertikal.errors import InputError
from vertikal.kernels.bandwidth import sample_pairs

X = np.random.default_rng(0).normal(2, 1, (40, 5)) * [1, 10, 0.1, 3, 1]
Y = np.arange(40) % 2


def fit(values, weights=None, **settings):
    given = {"parties": 3, "n_components": 8, "solver": Stochastic(n_steps=1), "random_state": 0}
    return FDSKLClassifier(**(given | settings)).fit(values, Y[: values.shape[0]], weights)


def plain_mean(values, kernel):
    mean = mean_distance_of_all_pairs(kernel, values)
    return mean if kernel == "laplace" else np.sqrt(mean / 2)


def plain_median(values, kernel, pairs=None):
    """The lower median over pairs of different rows."""
    pairs = itertools.combinations(range(len(values)), 2) if pairs is None else pairs
    if kernel == "laplace":
        found = sorted(float(np.abs(values[i] - values[j]).sum()) for i, j in pairs)
        return found[(len(found) - 1) // 2]
    found = sorted(euclidean(values[i], values[j]) for i, j in pairs)
    return found[(len(found) - 1) // 2] / np.sqrt(2)


PLAIN = {"mean": plain_mean, "median": plain_median}


@pytest.mark.parametrize("bandwidth", ["mean", "median"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "matern32"])
@pytest.mark.parametrize("label_parties", [1, ["party3"], 2])
@pytest.mark.parametrize("masking", ["pads", "trees"])
def test_the_federated_one_is_the_plain_one(bandwidth, kernel, label_parties, masking):
    if masking == "trees" and label_parties == 2:
        label_parties = 3
    settings = {"kernel": kernel, "label_parties": label_parties, "masking": masking}
    model = fit(X, bandwidth=bandwidth, **settings)
    assert model.bandwidth_ == pytest.approx(PLAIN[bandwidth](X, kernel), rel=1e-9)
    assert {shard.bandwidth for shard in model.shards_.values()} == {model.bandwidth_}


@pytest.mark.parametrize(("bandwidth", "factor"), [("0.5 mean", 0.5), ("3 median", 3.0)])
def test_a_multiple_of_a_typical_distance(bandwidth, factor):
    plain = PLAIN[bandwidth.split()[1]](X, "gaussian")
    model = fit(X, bandwidth=bandwidth)
    assert model.bandwidth_ == pytest.approx(factor * plain, rel=1e-9)
    assert {shard.bandwidth for shard in model.shards_.values()} == {model.bandwidth_}
    sent = {entry.disclosure.name for entry in model.ledger_.entries()}
    assert ("distances" in sent) == bandwidth.endswith("median")


@pytest.mark.parametrize("bandwidth", ["0.0 mean", "-1 mean", "0.5  mean", "half mean"])
def test_multiples_that_are_none(bandwidth):
    with pytest.raises(InputError, match="bandwidth must be a positive number or 'mean'"):
        fit(X, bandwidth=bandwidth)
    with pytest.raises(InputError, match="shows the label party distances of rows"):
        fit(X, bandwidth="2 median", disclosure="values")


@pytest.mark.parametrize("bandwidth", ["mean", "median"])
def test_in_the_scaled_columns(bandwidth):
    model = fit(X, scale="standard", bandwidth=bandwidth)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert model.bandwidth_ == pytest.approx(PLAIN[bandwidth](scaled, "gaussian"), rel=1e-9)


@pytest.mark.parametrize("bandwidth", ["mean", "median"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_sparse_columns(bandwidth, kernel):
    thin = X * (np.random.default_rng(1).random(X.shape) < 0.5)
    settings = {"bandwidth": bandwidth, "kernel": kernel}
    expected = fit(thin, **settings).bandwidth_
    assert fit(sparse.csr_array(thin), **settings).bandwidth_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("estimator", [FDSKLClassifier, FDSKLRegressor, AVFKAMClassifier])
@pytest.mark.parametrize("disclosure", ["open", "values", "sealed"])
def test_the_mean_is_the_default_at_every_level(estimator, disclosure):
    settings = {"disclosure": disclosure, "max_iter": 2, "n_components": 64}
    if disclosure == "sealed" and estimator is not FDSKLRegressor:
        settings["loss"] = "square"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(parties=3, random_state=0, **settings).fit(X, Y)
    assert model.bandwidth_ == pytest.approx(plain_mean(X, "gaussian"), rel=1e-9)


def test_one_number_of_each_party_leaves_for_the_mean():
    columns = {"bank": X[:, :1], "shop": X[:, 1:3], "clinic": X[:, 3:]}
    settings = FdsklSettings(parties=tuple(columns), label_parties=("bank",), n_components=8)
    run = train(columns, np.where(Y > 0, 1.0, -1.0), settings)
    before = list(itertools.takewhile(lambda frame: "phases" not in frame.header.tag, run.tape))
    sums = [frame for frame in before if frame.header.tag.startswith("sum/")]
    # Two ring elements are one number: its part above 2^-20, and the rest.
    assert sorted((f.header.sender, f.header.receiver, f.payload().shape) for f in sums) == [
        ("clinic", "bank", (1, 2)),
        ("shop", "bank", (1, 2)),
    ]
    fractions = [frame.payload()[0, 0] / 2**20 for frame in sums]
    shares = [mean_distance_of_all_pairs("gaussian", part) for part in columns.values()]
    assert all(abs(found - share) > 1 for found in fractions for share in shares)


@pytest.mark.parametrize("settings", [FdsklSettings, AvfkamSettings])
@pytest.mark.parametrize("disclosure", [{"name": "values"}, {"name": "sealed"}])
def test_the_median_is_refused_where_features_are_hidden(settings, disclosure):
    given = {"parties": ("a", "b", "c"), "label_parties": ("a",), "loss": "square"}
    with pytest.raises(InputError, match=r"^bandwidth must be a number or 'mean' with disclosure="):
        settings(**given, disclosure=disclosure, bandwidth="median")


def test_distances_of_sampled_pairs_would_show_the_columns():
    """The reason: of 60 rows, 2,000 pairs are all, and eight known rows give the other 52.

    Known rows k tell where a row x is by distances to them: ‖x − k‖² − ‖x − k₀‖² is linear in x.
    """
    hidden = np.random.default_rng(0).normal(size=(60, 5))
    pairs = sample_pairs(60, 0)
    distances = np.square(hidden[pairs[:, 0]] - hidden[pairs[:, 1]]).sum(axis=1)
    matrix = np.zeros((60, 60))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = distances
    known, gaps = hidden[:8], matrix[8:, :8]
    lengths = np.square(known).sum(axis=1)
    right = (lengths[1:] - lengths[0]) - (gaps[:, 1:] - gaps[:, :1])
    found = np.linalg.lstsq(2 * (known[1:] - known[0]), right.T, rcond=None)[0].T
    np.testing.assert_allclose(found, hidden[8:], atol=1e-9)
    with pytest.raises(InputError, match="'median' shows the label party distances of rows"):
        fit(X, disclosure="values", bandwidth="median", solver="exact")


def test_a_public_sample_where_there_are_many_rows():
    values = np.random.default_rng(2).normal(size=(90, 4))
    model = FDSKLRegressor(
        parties=2, n_components=8, solver=Stochastic(n_steps=1), random_state=5, bandwidth="median"
    ).fit(values, values[:, 0])
    pairs = sample_pairs(90, model.settings_.seed)
    assert len(pairs) < 90 * 89 / 2
    expected = plain_median(values, "gaussian", pairs.tolist())
    assert model.bandwidth_ == pytest.approx(expected, rel=1e-9)


def test_rows_of_weight_two_count_as_two_rows_in_the_median():
    weights = np.ones(40)
    weights[:15] = 2
    twice = np.vstack([X, X[:15]])
    labels = np.concatenate([Y, Y[:15]])
    settings = {"bandwidth": "median", "n_components": 8, "random_state": 0}
    copies = FDSKLClassifier(parties=3, solver=Stochastic(n_steps=1), **settings)
    copies.fit(twice, labels)
    weighted = fit(X, weights, bandwidth="median").bandwidth_
    assert weighted == pytest.approx(copies.bandwidth_, rel=1e-12)
    assert weighted != fit(X, bandwidth="median").bandwidth_


def test_the_mean_is_over_rows_whatever_their_weights():
    assert fit(X, np.arange(1.0, 41)).bandwidth_ == fit(X).bandwidth_


def test_a_number_is_taken_as_it_is_and_nothing_is_sent_for_it():
    model = fit(X, bandwidth=np.float32(1.25))
    assert model.bandwidth_ == 1.25
    names = {disclosure.name for disclosure in model.ledger_.disclosures()}
    kinds = {"distances", "mean distance", "bandwidth"}
    assert kinds.isdisjoint(names)
    for bandwidth, other in (("mean", "distances"), ("median", "mean distance")):
        names = {d.name for d in fit(X, bandwidth=bandwidth).ledger_.disclosures()}
        assert kinds & names == kinds - {other}


@pytest.mark.parametrize("bandwidth", ["mean", "median"])
@pytest.mark.parametrize("unit", [1e-7, 1e-3, 1e4])
def test_the_unit_of_the_columns_does_not_matter(bandwidth, unit):
    values = np.random.default_rng(3).normal(size=(40, 5))
    model = fit(values * unit, bandwidth=bandwidth)
    expected = PLAIN[bandwidth](values, "gaussian") * unit
    assert model.bandwidth_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("bandwidth", ["mean", "median"])
def test_distances_below_fixed_point_are_not_called_equal_without_a_remedy(bandwidth):
    with pytest.raises(InputError, match=rf"^bandwidth: '{bandwidth}' needs .* scale the columns"):
        fit(X * 1e-15, bandwidth=bandwidth)


def test_rows_that_do_not_differ_are_refused():
    values = np.zeros((6, 4))
    values[0] = 1.0
    weights = np.ones(6)
    weights[0] = 0
    with pytest.raises(InputError, match=r"^bandwidth: 'median' needs rows that differ"):
        fit(values, weights, bandwidth="median")
