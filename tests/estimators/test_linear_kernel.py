"""The linear kernel: a linear machine of all columns at every level of disclosure."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from vertikal import FDSKLClassifier, FDSKLRegressor
from vertikal.demo.credit import credit_population
from vertikal.errors import InputError

ROWS = 900
TRAIN, TEST = slice(0, 600), slice(600, ROWS)


def linear(columns=128, **options):
    return FDSKLClassifier(
        3, kernel="linear", scale="standard", n_components=columns, random_state=0, **options
    )


@pytest.fixture(scope="module")
def people():
    found = credit_population(ROWS, 0)
    return StandardScaler().fit(found.X[TRAIN]).transform(found.X), found.y


@pytest.mark.parametrize(
    ("level", "loss", "likeness"),
    [("open", "logistic", 0.96), ("values", "logistic", 0.96), ("sealed", "square", 0.93)],
)
def test_it_predicts_as_a_linear_model_of_all_columns_does(people, level, loss, likeness):
    X, y = people
    model = linear(disclosure=level, loss=loss, tol=0.03).fit(X[TRAIN], y[TRAIN])
    f = model.decision_function(X[TEST])
    twin = LogisticRegression(C=10).fit(X[TRAIN], y[TRAIN]).decision_function(X[TEST])
    assert np.corrcoef(f, twin)[0, 1] > likeness
    assert roc_auc_score(y[TEST], f) == pytest.approx(roc_auc_score(y[TEST], twin), abs=0.02)


def test_products_of_columns_are_beyond_it():
    X = np.random.default_rng(0).normal(size=(2000, 4))
    y = (X[:, 0] * X[:, 2] > 0).astype(int)
    f = linear(512).fit(X[:1000], y[:1000]).decision_function(X[1000:])
    assert abs(roc_auc_score(y[1000:], f) - 0.5) < 0.07


def test_numbers_too():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(500, 6))
    y = X @ [1.0, -2.0, 0.0, 0.5, 0.0, 3.0] + 0.1 * generator.normal(size=500)
    model = FDSKLRegressor(3, kernel="linear", scale="standard", random_state=0, n_components=128)
    found = model.fit(X[:300], y[:300]).predict(X[300:])
    assert np.corrcoef(found, Ridge().fit(X[:300], y[:300]).predict(X[300:]))[0, 1] > 0.99


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": None}, "scale must be 'standard'"),
        ({"scale": "minmax"}, "scale must be 'standard'"),
        ({"feature_map": {"name": "fourier", "functions": "pair"}}, "with its defaults"),
        ({"feature_map": "landmarks"}, "'gaussian' for landmarks"),
        ({"masking": "trees"}, "no offsets to mask by"),
    ],
)
def test_what_would_bend_or_show_it_is_refused(people, options, words):
    X, y = people
    with pytest.raises(InputError, match=words):
        linear().set_params(**options).fit(X, y)
