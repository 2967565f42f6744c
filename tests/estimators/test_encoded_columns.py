"""Estimators on encoded columns: the same model as on columns that were encoded before."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vertikal import (
    ADMMClassifier,
    AVFKAMClassifier,
    FDSKLClassifier,
    FDSKLRegressor,
    SecureKernelSVC,
    Values,
)
from vertikal.data.encoding import ENCODINGS, learn_encoding
from vertikal.data.tables import Table

LEVELS = {
    "open": {},
    "landmarks": {"feature_map": "landmarks", "n_components": 32},
    "values": {"disclosure": Values(bits=64, value_bits=20, gradient_bits=20, prediction_bits=28)},
    "bare dealer": {
        "disclosure": Values(
            bits=64, dealer="notary", value_bits=20, gradient_bits=20, prediction_bits=28
        )
    },
}


@pytest.fixture(scope="module")
def rows():
    """Columns with long tails of which the first two decide together, one with a spike."""
    generator = np.random.default_rng(0)
    logs = generator.normal(size=(500, 6))
    X = np.exp(2 * logs)
    X[:, 5] = np.where(logs[:, 5] > 1, logs[:, 5], 0.0)
    return X, (logs[:, 0] * logs[:, 1] > 0).astype(int)


def encode(X, kind, train):
    table = Table("all", tuple(map(str, range(X.shape[1]))), X)
    encoding = learn_encoding(table, kind, rows=np.arange(train))
    return encoding.apply(table).block(slice(None)), np.array(encoding.parents)


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("level", LEVELS)
def test_encoding_inside_is_encoding_before(rows, kind, level):
    X, y = rows
    settings = {"n_components": 64, "alpha": 0.01, "random_state": 0} | LEVELS[level]
    parties = {"bank": [0, 1], "shop": [2, 3], "phone": [4, 5]}
    encoded, parents = encode(X, kind, 300)
    outside = {name: np.flatnonzero(np.isin(parents, own)) for name, own in parties.items()}
    model = FDSKLClassifier(parties, scale=kind, **settings).fit(X[:300], y[:300])
    twin = FDSKLClassifier(outside, **settings).fit(encoded[:300], y[:300])
    assert len(parents) > X.shape[1]
    np.testing.assert_allclose(
        model.decision_function(X[300:]), twin.decision_function(encoded[300:]), atol=2e-2
    )
    if level in ("open", "landmarks"):
        np.testing.assert_allclose(
            model.decision_function(X[300:]), twin.decision_function(encoded[300:]), atol=1e-5
        )


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("estimator", [FDSKLClassifier, AVFKAMClassifier])
def test_long_tails_do_not_hide_what_decides(rows, kind, estimator):
    X, y = rows
    model = estimator(3, scale=kind, n_components=512, random_state=0).fit(X[:400], y[:400])
    plain = estimator(3, scale="standard", n_components=512, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.75
    assert plain.score(X[400:], y[400:]) < 0.65


def test_a_row_is_predicted_alone_as_among_others(rows):
    X, y = rows
    model = FDSKLClassifier(3, scale="quantile", n_components=64, random_state=0).fit(X, y)
    together = model.decision_function(X[:5])
    alone = [model.decision_function(X[i : i + 1])[0] for i in range(5)]
    np.testing.assert_allclose(alone, together, atol=1e-6)


def test_the_shard_of_each_party_has_its_own_encoding(rows):
    X, y = rows
    model = FDSKLClassifier(3, scale="smooth", n_components=64, random_state=0).fit(X, y)
    assert model.shards_["party3"].encoding.titles == ("4", "5", "5 = 0")
    assert model.shards_["party3"].columns == ("4", "5")
    assert model.shards_["party3"].width == 3


def test_few_cells_stay_sparse(rows):
    generator = np.random.default_rng(1)
    X = sparse.random_array((200, 40), density=0.05, format="csr", rng=generator)
    y = np.asarray(X[:, :20].sum(axis=1) > X[:, 20:].sum(axis=1)).ravel()
    settings = {"n_components": 64, "random_state": 0}
    model = FDSKLClassifier(2, scale="smooth", **settings).fit(X, y)
    largest = X.max(axis=0).toarray().ravel()
    twin = FDSKLClassifier(2, **settings).fit(X.toarray() * 0.7 / largest, y)
    np.testing.assert_allclose(
        model.decision_function(X),
        twin.decision_function(X.toarray() * 0.7 / largest),
        atol=1e-5,
    )


def test_regression_on_encoded_columns(rows):
    X, _ = rows
    target = np.log(X[:, 0]) + np.log(X[:, 2])
    model = FDSKLRegressor(2, scale="normal", n_components=512, random_state=0)
    assert model.fit(X[:400], target[:400]).score(X[400:], target[400:]) > 0.8


@pytest.mark.parametrize("estimator", [ADMMClassifier, SecureKernelSVC])
def test_other_algorithms_scale_by_straight_lines_only(rows, estimator):
    X, y = rows
    with pytest.raises(ValueError, match=r"scale must be one of .*'standard'.* got 'smooth'"):
        estimator(2, scale="smooth").fit(X, y)
