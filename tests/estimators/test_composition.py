"""The estimators inside scikit-learn's own machinery, and on disk."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vertikal import FDSKLClassifier, FDSKLRegressor

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(3, 2, size=(90, 4))
Y = (X[:, 0] * X[:, 2] > 9).astype(int)
SMALL = {"parties": 2, "n_components": 32, "random_state": 0}


def test_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), FDSKLClassifier(**SMALL)).fit(X, Y)
    scaled = FDSKLClassifier(**SMALL, scale="standard").fit(X, Y)
    np.testing.assert_allclose(
        pipeline.decision_function(X), scaled.decision_function(X), atol=1e-9
    )


def test_a_grid_search():
    search = GridSearchCV(
        FDSKLClassifier(**SMALL, scale="standard"),
        {"bandwidth": [0.01, 1.5], "alpha": [1e-3, "auto"], "kernel": ["gaussian", "laplace"]},
        cv=2,
    ).fit(X, Y)
    assert search.best_params_["bandwidth"] == 1.5
    assert search.best_score_ > 0.6
    assert search.best_estimator_.ledger_.bytes > 0


@pytest.mark.parametrize("estimator", [FDSKLClassifier, FDSKLRegressor])
def test_cross_validation(estimator):
    scores = cross_val_score(estimator(**SMALL, scale="standard"), X, Y, cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    again = cross_val_score(estimator(**SMALL, scale="standard"), X, Y, cv=3)
    np.testing.assert_array_equal(scores, again)


@pytest.mark.parametrize("estimator", [FDSKLClassifier, FDSKLRegressor])
def test_clone_keeps_every_parameter_and_nothing_fitted(estimator):
    model = estimator(
        parties={"a": [0], "b": [1, 2]}, label_parties=["b"], kernel="laplace", cache_size="2MB"
    )
    copy = clone(model.fit(X, Y))
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert len(model.get_params()) == len(copy.__init__.__code__.co_varnames) - 1


def test_parameters_are_stored_as_they_came():
    parties = {"a": [0], "b": [1, 2]}
    model = FDSKLClassifier(parties, cache_size="2MB", bandwidth=-3)
    assert model.parties is parties
    assert model.cache_size == "2MB"
    assert model.bandwidth == -3


def test_set_params_takes_effect():
    model = FDSKLClassifier(**SMALL).fit(X, Y)
    model.set_params(n_components=16, kernel="laplace").fit(X, Y)
    assert model.settings_.n_components == 16
    assert len(model.shards_["party1"].coefficients) == 16


@pytest.mark.parametrize("solver", ["exact", "dsg"])
@pytest.mark.parametrize("kernel", ["gaussian", "matern"])
def test_joblib_brings_the_whole_model_back(tmp_path, solver, kernel):
    model = FDSKLClassifier(**SMALL, solver=solver, kernel=kernel, label_parties=2).fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    back = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert str(back.ledger_) == str(model.ledger_)
    assert str(back.report_) == str(model.report_)
    assert back.settings_ == model.settings_


def test_pickle_keeps_the_regressor():
    model = FDSKLRegressor(**SMALL).fit(X, Y)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_calibration_gives_the_smooth_hinge_probabilities():
    hinge = FDSKLClassifier(**SMALL, loss="smooth_hinge", scale="standard")
    chances = CalibratedClassifierCV(hinge, cv=2).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_refitting_forgets_the_first_fit():
    model = FDSKLClassifier(**SMALL).fit(X[:50], Y[:50])
    model.fit(X, Y)
    fresh = FDSKLClassifier(**SMALL).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), fresh.decision_function(X))
