"""The same rows in another container give the same model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from vertikal import FDSKLClassifier

GENERATOR = np.random.default_rng(0)
NAMES = ["age", "income", "debt", "visits", "basket"]
X = GENERATOR.normal(size=(80, 5)).astype(np.float32) * (GENERATOR.random((80, 5)) < 0.7)
NEW = GENERATOR.normal(size=(20, 5)).astype(np.float32)
Y = (X[:, 0] + X[:, 3] > 0).astype(int)
BY_NAME = {"bank": ["age", "debt", "income"], "shop": ["basket", "visits"]}
BY_NUMBER = {"bank": [0, 2, 1], "shop": [4, 3]}

CONTAINERS = {
    "float64": np.asarray,
    "float32": lambda a: a.astype(np.float32),
    "fortran": np.asfortranarray,
    "lists": lambda a: a.tolist(),
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_matrix,
}
FRAMES = {
    "pandas": lambda a: pd.DataFrame(a, columns=NAMES),
    "polars": lambda a: pl.DataFrame(a, schema=NAMES),
}


def make(parties, **settings):
    return FDSKLClassifier(parties, n_components=32, random_state=0, **settings)


@pytest.fixture(scope="module")
def plain():
    return make(BY_NUMBER).fit(X.astype(float), Y)


@pytest.mark.parametrize("container", CONTAINERS)
def test_arrays_and_sparse_matrices(plain, container):
    model = make(BY_NUMBER).fit(CONTAINERS[container](X.astype(float)), Y)
    np.testing.assert_allclose(
        model.shards_["bank"].coefficients, plain.shards_["bank"].coefficients, atol=1e-9
    )
    np.testing.assert_allclose(
        model.decision_function(CONTAINERS[container](NEW.astype(float))),
        plain.decision_function(NEW.astype(float)),
        atol=1e-9,
    )


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("parties", [BY_NAME, BY_NUMBER], ids=["by name", "by number"])
def test_data_frames(plain, frame, parties):
    model = make(parties).fit(FRAMES[frame](X.astype(float)), Y)
    np.testing.assert_array_equal(
        model.shards_["bank"].coefficients, plain.shards_["bank"].coefficients
    )
    np.testing.assert_array_equal(
        model.decision_function(FRAMES[frame](NEW.astype(float))),
        plain.decision_function(NEW.astype(float)),
    )
    assert model.feature_names_in_.tolist() == NAMES
    assert model.shards_["shop"].columns == ("basket", "visits")


@pytest.mark.parametrize("labels", [pd.Series, pl.Series, list])
def test_labels_in_a_series(plain, labels):
    model = make(BY_NUMBER).fit(X.astype(float), labels(Y))
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))


@pytest.mark.parametrize("scale", ["standard", "minmax", "max"])
def test_scaled_sparse_columns_equal_scaled_dense_ones(scale):
    dense = make(BY_NUMBER, scale=scale).fit(X, Y)
    thin = make(BY_NUMBER, scale=scale).fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(
        thin.decision_function(sparse.csc_array(NEW)), dense.decision_function(NEW), atol=1e-6
    )


def test_rows_are_predicted_one_by_one_as_together(plain):
    together = plain.decision_function(NEW)
    alone = [plain.decision_function(row[None])[0] for row in NEW]
    np.testing.assert_allclose(alone, together, atol=1e-9)


def test_the_input_is_left_as_it_was():
    before, labels = X.copy(), Y.copy()
    make(BY_NUMBER, scale="standard").fit(X, Y).predict(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(Y, labels)


@pytest.mark.parametrize(
    "columns",
    [
        {"bank": [0, 1, 2], "shop": [3, 4]},
        {"bank": slice(0, 3), "shop": slice(3, None)},
        {"bank": (0, 1, 2), "shop": (-2, -1)},
        {"bank": range(3), "shop": range(3, 5)},
        {"bank": np.arange(3), "shop": np.array([3, 4])},
        {"bank": list(np.arange(3)), "shop": [np.int32(3), np.int64(4)]},
        {"bank": [True, True, True, False, False], "shop": np.arange(5) >= 3},
        {"bank": [0, 1, 2], "shop": pd.Index([3, 4])},
    ],
)
def test_ways_to_list_columns(columns):
    assert make(columns).fit(X, Y).columns_ == {"bank": [0, 1, 2], "shop": [3, 4]}


def test_one_column_needs_no_list():
    model = make({"bank": "age", "shop": 3}).fit(FRAMES["pandas"](X), Y)
    assert model.columns_ == {"bank": [0], "shop": [3]}


@pytest.mark.parametrize(("parties", "runs"), [(2, [3, 2]), (3, [2, 2, 1]), (5, [1] * 5)])
def test_a_number_of_parties_cuts_the_columns_into_runs(parties, runs):
    columns = make(parties).fit(X, Y).columns_
    assert list(columns) == [f"party{i}" for i in range(1, parties + 1)]
    assert [len(run) for run in columns.values()] == runs
    assert [c for run in columns.values() for c in run] == list(range(5))
