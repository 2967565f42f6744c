"""KernelClassifier and KernelRegressor: choices, attributes, pipelines, frames, checks."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine, make_friedman1
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from vertikal import FDSKLRegressor, KernelClassifier, KernelRegressor, Sealed, Values
from vertikal.errors import InputError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(240, 6))
Y = np.where(X[:, 0] * X[:, 4] > 0, "yes", "no")
SMALL = {"parties": 2, "n_components": 64, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return KernelClassifier(**SMALL).fit(X, Y)


def test_it_learns_which_columns_matter_and_keeps_the_search(model):
    assert model.score(X, Y) > 0.95
    assert model.relevance_["party1"]["0"] == 1.0
    assert model.relevance_["party2"]["4"] == 1.0
    assert {one.stage for one in model.search_} == {"relevance", "bandwidth", "model"}
    assert model.n_components_ == 64
    assert 0 < model.rounds_ <= 2
    best = min((one for one in model.search_ if one.stage == "model"), key=lambda one: one.loss)
    assert model.alpha_ == best.penalty
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_the_same_state_gives_the_same_model(model):
    again = clone(model).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    other = clone(model).set_params(random_state=1).fit(X, Y)
    assert (other.decision_function(X) != model.decision_function(X)).any()


def test_it_beats_equal_columns():
    x, y = make_friedman1(500, n_features=10, noise=0.3, random_state=0)
    tuned = KernelRegressor(**SMALL).fit(x[:350], y[:350])
    named = FDSKLRegressor(**SMALL, scale="standard").fit(x[:350], y[:350])
    assert tuned.score(x[350:], y[350:]) > 0.85
    assert tuned.score(x[350:], y[350:]) > named.score(x[350:], y[350:]) + 0.1


def test_several_classes():
    x, y = load_wine(return_X_y=True)
    scores = cross_val_score(KernelClassifier(**(SMALL | {"parties": 3})), x, y, cv=3)
    assert scores.mean() > 0.92


def test_pipelines_and_searches():
    pipeline = make_pipeline(FunctionTransformer(np.asarray), KernelClassifier(**SMALL))
    search = GridSearchCV(pipeline, {"kernelclassifier__n_components": [16, 64]}, cv=2).fit(X, Y)
    assert search.best_params_["kernelclassifier__n_components"] in (16, 64)
    assert search.score(X, Y) > 0.8


def test_frames_with_categories_and_missing_cells():
    frame = pd.DataFrame(X[:, :4], columns=["age", "debt", "income", "rate"])
    frame["town"] = np.where(X[:, 4] > 0, "north", "south")
    frame.loc[::7, "debt"] = np.nan
    parties = {"bank": ["age", "debt"], "shop": ["income", "rate", "town"]}
    model = KernelClassifier(parties, n_components=64, random_state=0).fit(frame, Y)
    assert model.score(frame, Y) > 0.9
    assert list(model.relevance_) == ["bank", "shop"]
    with pytest.raises(InputError, match="missing"):
        clone(model).set_params(missing="refuse").fit(frame, Y)


def test_constant_columns_are_ignored_with_a_warning():
    x = np.column_stack((X, np.ones(len(X))))
    with pytest.warns(UserWarning, match="the same number in each row"):
        model = KernelClassifier(**SMALL).fit(x, Y)
    assert model.score(x, Y) > 0.9


def test_weights_of_rows_and_classes():
    wrong = np.where(np.arange(240) < 160, Y, np.where(Y == "yes", "no", "yes"))
    weights = np.where(np.arange(240) < 160, 1.0, 0.0)
    model = KernelClassifier(**SMALL).fit(X, wrong, sample_weight=weights)
    assert model.score(X[:160], Y[:160]) > 0.9
    rare = np.where(X[:, 0] > 1.5, "yes", "no")
    plain = KernelClassifier(**SMALL).fit(X, rare)
    balanced = KernelClassifier(**SMALL, class_weight="balanced").fit(X, rare)
    assert (balanced.predict(X) == "yes").sum() >= (plain.predict(X) == "yes").sum()


def test_hidden_features():
    generator = np.random.default_rng(3)
    x = generator.normal(size=(1200, 6))
    y = x[:, 0] * x[:, 4] > 0
    model = KernelClassifier(
        3, n_components=128, random_state=0, disclosure=Values(dealer="notary")
    ).fit(x, y)
    assert model.score(x, y) > 0.85
    assert set(model.relevance_) == {"party1", "party2", "party3"}
    assert "sketches" in {entry.disclosure.name for entry in model.ledger_.entries()}
    assert "phases" not in {entry.disclosure.name for entry in model.ledger_.entries()}


def test_regression_in_the_unit_of_the_targets():
    x, y = load_diabetes(return_X_y=True)
    model = KernelRegressor(parties=3, n_components=64, random_state=0).fit(x, y)
    assert abs(model.predict(x).mean() - y.mean()) < 10
    shifted = KernelRegressor(parties=3, n_components=64, random_state=0).fit(x, 1000 + 10 * y)
    np.testing.assert_allclose(shifted.predict(x), 1000 + 10 * model.predict(x), rtol=1e-6)


def test_progress_says_what_was_tried():
    class Notes:
        def __init__(self):
            self.notes = []

        def begin(self, party, stage, total):
            pass

        def advance(self, party, stage, amount, note):
            if note:
                self.notes.append(note)

        def end(self, party, stage, seconds):
            pass

    notes = Notes()
    KernelClassifier(**SMALL, verbose=notes).fit(X, Y)
    assert any(note.startswith("round 0: loss") for note in notes.notes)
    assert any(note.startswith("bandwidths") for note in notes.notes)
    assert any("directions: " in note for note in notes.notes)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"disclosure": "sealed"}, "disclosure must be 'open' or 'values'"),
        ({"disclosure": Sealed()}, "disclosure must be 'open' or 'values'"),
        ({"n_components": 0}, "n_components must be a positive whole number or 'auto'"),
        ({"budget": "much"}, "budget must be a positive number of bytes"),
        ({"missing": "guess"}, "missing must be"),
    ],
)
def test_parameters_are_checked(wrong, words):
    with warnings.catch_warnings(), pytest.raises(InputError, match=words):
        KernelClassifier(**(SMALL | wrong)).fit(X, Y)
