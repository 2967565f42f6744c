"""Frames with categories, missing cells and mixed types: prepared at each party as by services."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from vertikal import (
    ADMMClassifier,
    AVFKAMClassifier,
    FDSKLClassifier,
    FDSKLRegressor,
    Privacy,
    SecureKernelSVC,
)
from vertikal.data import cells
from vertikal.data.preparation import learn_preparation
from vertikal.data.sources import open_source
from vertikal.errors import InputError
from vertikal.estimators import frames

PARTIES = {"bank": ["income", "region"], "shop": ["basket", "card", "flag"]}


def people(rows=300, seed=0):
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": draw.lognormal(8, 1, rows),
            "region": draw.choice(["north", "south", "west"], rows),
            "basket": draw.normal(size=rows),
            "card": pd.Categorical(draw.choice([1, 2, 7], rows)),
            "flag": draw.random(rows) < 0.5,
        }
    )
    odds = (frame["region"] == "north") * 2.0 + (frame["card"] == 7) * 2.0 + frame["basket"] - 1.5
    frame.loc[draw.random(rows) < 0.1, "income"] = np.nan
    frame.loc[draw.random(rows) < 0.1, "region"] = None
    return frame, (odds > 0).to_numpy().astype(int)


@pytest.fixture(scope="module")
def rows():
    return people()


def make(estimator=FDSKLClassifier, **settings):
    given = {"n_components": 64, "random_state": 0, "missing": "indicator", "scale": "standard"}
    return estimator(PARTIES, **(given | settings))


def by_hand(frame, training):
    """The numbers that each party's service would make of its columns."""
    tables = {}
    for party, names in PARTIES.items():
        own = (
            frame[names].assign(card=frame["card"].astype(int)) if "card" in names else frame[names]
        )
        categories = ["card"] if "card" in names else []
        learned = own.iloc[:training]
        preparation, _ = learn_preparation(
            open_source(party, learned), names, missing="indicator", categories=categories
        )
        tables[party] = preparation.apply(open_source(party, own)).table
    return tables


def test_a_frame_gives_the_model_that_services_would_train(rows):
    frame, y = rows
    model = make().fit(frame[:200], y[:200])
    tables = by_hand(frame, 200)
    values = np.hstack([table.block(slice(None)) for table in tables.values()])
    cut = tables["bank"].width
    numbers = {"bank": range(cut), "shop": range(cut, values.shape[1])}
    twin = FDSKLClassifier(numbers, n_components=64, random_state=0, scale="standard").fit(
        values[:200], y[:200]
    )
    np.testing.assert_allclose(
        model.decision_function(frame[200:]), twin.decision_function(values[200:]), atol=1e-6
    )
    assert model.preparations_["bank"].titles == tables["bank"].columns
    assert "card = 7" in model.preparations_["shop"].titles
    assert model.score(frame[200:], y[200:]) > 0.8


def test_a_polars_frame_is_as_good_as_one_of_pandas(rows):
    frame, y = rows
    spoken = frame.assign(card=frame["card"].astype(str).astype("category"))
    other = pl.from_pandas(spoken)
    model = make().fit(frame[:200], y[:200])
    twin = make().fit(other[:200], y[:200])
    np.testing.assert_allclose(
        twin.decision_function(other[200:]), model.decision_function(frame[200:]), atol=1e-6
    )


@pytest.mark.parametrize(
    "estimator",
    [
        lambda: make(AVFKAMClassifier),
        lambda: ADMMClassifier(PARTIES, missing="mean", scale="standard", random_state=0),
        lambda: SecureKernelSVC(PARTIES, missing="mean", scale="standard", random_state=0),
    ],
)
def test_other_estimators_take_frames_too(rows, estimator):
    frame, y = rows
    assert estimator().fit(frame[:200], y[:200]).score(frame[200:], y[200:]) > 0.7


def test_regression_on_a_frame(rows):
    frame, _ = rows
    target = frame["basket"].to_numpy() + 2 * (frame["card"] == 7)
    model = make(FDSKLRegressor, scale="smooth", n_components=256)
    assert model.fit(frame[:200], target[:200]).score(frame[200:], target[200:]) > 0.7


def test_missing_cells_are_refused_unless_asked_for(rows):
    frame, y = rows
    with pytest.raises(InputError, match=r"columns of bank: cells are missing \(\d+ in 'income'"):
        make(missing="refuse").fit(frame, y)
    with pytest.raises(InputError, match="missing must be one of 'refuse', 'mean', 'indicator'"):
        make(missing="drop").fit(frame, y)


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_missing_cells_of_an_array(missing):
    draw = np.random.default_rng(1)
    X = draw.normal(size=(120, 4))
    y = (X[:, 0] + X[:, 2] > 0).astype(int)
    X[draw.random(X.shape) < 0.05] = np.nan
    settings = {"n_components": 64, "random_state": 0}
    model = FDSKLClassifier(2, missing=missing, **settings).fit(X, y)
    holes = np.isnan(X)
    values = np.where(holes, np.nanmean(X, axis=0), X)
    order = [0, 1, 2, 3]
    if missing == "indicator":
        values, order = np.hstack((values, holes)), [0, 4, 1, 5, 2, 6, 3, 7]
    twin = FDSKLClassifier(2, **settings).fit(values[:, order], y)
    np.testing.assert_allclose(
        model.decision_function(X), twin.decision_function(values[:, order]), atol=1e-6
    )
    with pytest.raises(ValueError, match="X has 3 features, but FDSKLClassifier is expecting 4"):
        model.predict(X[:, :3])


def not_installed():
    raise ModuleNotFoundError("pyarrow")


def test_numbers_are_prepared_without_arrow_as_with_it(monkeypatch):
    """Also in frames, and where a cell is missing only when predicting."""
    draw = np.random.default_rng(8)
    frame = pd.DataFrame(draw.normal(size=(80, 4)), columns=list("abcd"))
    frame["e"] = 2.5
    frame["f"] = pd.array(draw.integers(0, 9, 80), "Int64")
    y = np.arange(80) % 2
    frame.loc[3:9, "b"] = np.nan
    frame.loc[5, "f"] = pd.NA
    new = frame.assign(a=np.nan)
    parties = {"bank": ["a", "b", "e"], "shop": ["c", "d", "f"]}
    settings = {"n_components": 16, "random_state": 0, "missing": "indicator"}
    arrowed = FDSKLClassifier({**parties, "phone": ["word"]}, **settings)
    words = {"word": ["x", "y"] * 40}
    with pytest.warns(UserWarning, match="'e' was dropped: it is the same number"):
        arrowed.fit(frame.assign(**words), y)
    for module in (frames, cells):
        monkeypatch.setattr(module, "arrow", not_installed)
    model = FDSKLClassifier(parties, **settings)
    for container in (frame, pl.DataFrame(frame.astype(float).to_dict("list"))):
        with pytest.warns(UserWarning, match="'e' was dropped: it is the same number"):
            model.fit(container, y)
        for party in parties:
            ours, theirs = model.preparations_[party], arrowed.preparations_[party]
            assert ours.titles == theirs.titles
            assert ours.remarks == theirs.remarks
            np.testing.assert_allclose(
                [plan.mean for plan in ours.columns], [plan.mean for plan in theirs.columns]
            )
        assert np.isfinite(model.decision_function(new if container is frame else container)).all()
    with pytest.raises(InputError, match="column 'c' of party 'shop' must hold finite numbers"):
        model.predict(frame.assign(c=np.inf))
    with pytest.raises(ModuleNotFoundError):
        arrowed.fit(frame.assign(**words), y)


def test_sparse_rows_are_predicted_by_a_model_of_dense_ones():
    X = np.random.default_rng(9).normal(size=(60, 4)).round(0)
    model = FDSKLClassifier(2, missing="mean", n_components=16, random_state=0)
    model.fit(X, np.arange(60) % 2)
    np.testing.assert_allclose(
        model.decision_function(sparse.csr_array(X)), model.decision_function(X), atol=1e-9
    )


def test_mixed_cells_of_one_column_are_categories(rows):
    frame, y = rows
    mixed = frame.assign(basket=[1, "two", 3.5, True] * 75)
    model = make().fit(mixed, y)
    titles = model.preparations_["shop"].titles
    assert {"basket = 1", "basket = two", "basket = 3.5", "basket = True"} <= set(titles)


def test_categories_that_training_lacked_are_all_zeros(rows):
    frame, y = rows
    model = make().fit(frame[:200], y[:200])
    one = frame[200:201].assign(region="moon")
    other = frame[200:201].assign(region="mars")
    np.testing.assert_array_equal(model.decision_function(one), model.decision_function(other))


def test_columns_come_by_name(rows):
    frame, y = rows
    model = make().fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["region", "income", "basket", "card", "flag"]])


def test_a_second_fit_forgets_the_preparation(rows):
    frame, y = rows
    model = make(missing="refuse").fit(frame.dropna(), y[frame.notna().all(axis=1)])
    assert model.preparations_
    numbers = pd.DataFrame(np.random.default_rng(2).normal(size=(60, 5)), columns=list(frame))
    assert not model.fit(numbers, np.arange(60) % 2).preparations_
    assert model.predict(numbers).shape == (60,)


def test_grid_search_over_rare_categories():
    """In some folds a category is missing, in others a column is constant."""
    frame, y = people(150, seed=3)
    frame.loc[:2, "region"] = "isle"
    frame["rare"] = "no"
    frame.loc[5, "rare"] = "yes"
    parties = {**PARTIES, "phone": ["rare", "income2"]}
    frame["income2"] = np.random.default_rng(4).normal(size=150)
    model = FDSKLClassifier(parties, n_components=32, missing="indicator", random_state=0)
    search = GridSearchCV(model, {"alpha": [1e-3, 1e-2], "scale": ["smooth"]}, cv=3)
    with pytest.warns(UserWarning, match="party 'phone': column 'rare' was dropped"):
        search.fit(frame, y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()


def test_a_pipeline_keeps_the_frame(rows):
    frame, y = rows
    doubled = FunctionTransformer(lambda X: X.assign(basket=X["basket"] * 2))
    assert cross_val_score(make_pipeline(doubled, make()), frame, y, cv=3).mean() > 0.75


def test_the_digits_whose_corners_are_always_blank():
    X, y = load_digits(return_X_y=True)
    model = FDSKLClassifier(4, n_components=256, random_state=0)
    with pytest.warns(UserWarning, match="column '0' of party 'party1' is constant") as caught:
        model.fit(X, y)
    assert len([one for one in caught if "constant" in str(one.message)]) == 1
    assert model.score(X, y) > 0.95
    assert 0 not in model.columns_["party1"]
    X[:, 0] = 5
    assert model.score(X, y) > 0.95


def test_constant_columns_change_nothing():
    draw = np.random.default_rng(5)
    X = draw.normal(size=(100, 4))
    y = (X[:, 0] > 0).astype(int)
    wide = np.insert(X, 2, 0.25, axis=1)
    parties = {"bank": [0, 1, 2], "shop": [3, 4]}
    settings = {"n_components": 32, "random_state": 0}
    with pytest.warns(UserWarning, match="column '2' of party 'bank' is constant"):
        model = FDSKLClassifier(parties, **settings).fit(wide, y)
    twin = FDSKLClassifier({"bank": [0, 1], "shop": [2, 3]}, **settings).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(wide), twin.decision_function(X))


@pytest.mark.parametrize("party", ["bank", "shop"])
@pytest.mark.parametrize("settings", [{}, {"disclosure": "values"}, {"scale": "smooth"}])
def test_a_party_whose_columns_are_all_constant(party, settings):
    draw = np.random.default_rng(6)
    X = draw.normal(size=(120, 6))
    parties = {"bank": [0, 1], "shop": [2, 3], "phone": [4, 5]}
    y = (X[:, 4] > 0).astype(int)
    X[:, parties[party]] = 1.5
    model = FDSKLClassifier(parties, n_components=128, alpha=0.01, random_state=0, **settings)
    with pytest.warns(UserWarning, match="is constant"):
        model.fit(X, y)
    assert model.score(X, y) > 0.85


def test_privacy_needs_columns_as_they_came(rows):
    frame, y = rows
    model = ADMMClassifier(
        PARTIES, missing="mean", privacy=Privacy(epsilon=1.0, delta=1e-5), random_state=0
    )
    with pytest.raises(InputError, match="numbers without missing cells"):
        model.fit(frame, y)


def test_parties_by_the_beginning_of_names(rows):
    X = pd.DataFrame(
        np.random.default_rng(7).normal(size=(60, 4)), columns=["b_x", "b_y", "s_x", "left"]
    )
    y = (X["b_x"] > 0).astype(int)
    settings = {"n_components": 16, "random_state": 0}
    model = FDSKLClassifier({"bank": "b_*", "shop": ["s_*", "left"]}, **settings).fit(X, y)
    assert model.columns_ == {"bank": [0, 1], "shop": [2, 3]}
    party_of = {"b": "bank", "s": "shop"}
    model = FDSKLClassifier(lambda name: party_of.get(name[0]), **settings).fit(X, y)
    assert model.columns_ == {"bank": [0, 1], "shop": [2]}
    with pytest.raises(InputError, match="the input has no column names"):
        FDSKLClassifier(lambda name: "bank", **settings).fit(X.to_numpy(), y)
    with pytest.raises(InputError, match=r"column 'z_\*' of parties.* is not in the input"):
        FDSKLClassifier({"bank": "z_*", "shop": "s_*"}, **settings).fit(X, y)
