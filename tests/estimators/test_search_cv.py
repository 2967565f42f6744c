"""FederatedSearchCV beside GridSearchCV: the same choice from far fewer passes over the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vertikal import AVFKAMClassifier, FDSKLClassifier, FDSKLRegressor, FederatedSearchCV
from vertikal.algorithms.kernel_machine import fdskl
from vertikal.errors import InputError

X, Y = make_moons(240, noise=0.25, random_state=0)
X = np.hstack([X, np.random.default_rng(0).normal(size=(240, 2))])
GRID = {"alpha": [10.0, 1e-1, 1e-3], "bandwidth": [0.5, 2.0]}


def model(kind=FDSKLClassifier, **options):
    given = {"parties": 2, "n_components": 64, "random_state": 0, "tol": 1e-6, "max_iter": 500}
    return kind(**{**given, **options})


@pytest.fixture
def passes(monkeypatch):
    """The passes over the rows that the exact solver's features took."""
    taken = []
    real = fdskl.PhasePass.gather
    monkeypatch.setattr(
        fdskl.PhasePass,
        "gather",
        lambda self, rows, kept: taken.append(self.party.name) or real(self, rows, kept),
    )
    return taken


def test_scores_and_choice_are_those_of_grid_search(passes):
    """With a given bandwidth and no scaling nothing is learned from rows but the fit itself."""
    ours = FederatedSearchCV(model(), GRID, cv=3, scoring="roc_auc").fit(X, Y)
    assert ours.passes_ == 2
    # Two bandwidths, and the fit of the best on all rows, of two parties each.
    assert len(passes) == 2 * (2 + 1)
    passes.clear()
    twin = GridSearchCV(model(), GRID, cv=3, scoring="roc_auc").fit(X, Y)
    assert len(passes) == 2 * (6 * 3 + 1)
    assert ours.best_params_ == twin.best_params_
    assert ours.cv_results_["params"] == twin.cv_results_["params"]
    for key in ("mean_test_score", "std_test_score", "split2_test_score"):
        np.testing.assert_allclose(ours.cv_results_[key], twin.cv_results_[key], atol=2e-3)
    assert (ours.cv_results_["rank_test_score"] == 1).argmax() == ours.best_index_
    assert ours.best_score_ == pytest.approx(twin.best_score_, abs=2e-3)
    assert (ours.predict(X) == twin.predict(X)).mean() > 0.99
    assert ours.predict_proba(X).shape == (240, 2)
    assert ours.decision_function(X).shape == (240,)
    assert ours.score(X, Y) == pytest.approx(twin.score(X, Y), abs=1e-3)
    assert (ours.classes_ == [0, 1]).all()


@pytest.mark.parametrize(
    ("estimator", "grid", "expected"),
    [
        (model(AVFKAMClassifier), {"alpha": [1e-1, 1e-2], "loss": ["square", "hinge"]}, 1),
        (model(), [{"alpha": [1e-1]}, {"kernel": ["laplace"], "alpha": [1e-1, 1e-2]}], 2),
        (model(disclosure="values", parties=3, tol=0.05), {"alpha": [1e-1]}, 2),
        (model(solver="dsg"), {"alpha": [1e-2]}, 2),
        (model(cache_size="1MB"), {"alpha": [1e-1]}, 2),
        (model(class_weight="balanced"), {"class_weight": [None, "balanced"]}, 2),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_passes_are_shared_where_only_the_fit_differs(estimator, grid, expected):
    if isinstance(estimator, AVFKAMClassifier):
        grid = {"alpha": [1e-1, 1e-2], "loss": ["square", "squared_hinge"]}
    search = FederatedSearchCV(estimator, grid, cv=2).fit(X, Y)
    assert search.passes_ == expected
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_numbers_weights_and_groups():
    targets = X[:, 0] + X[:, 2] ** 2
    grid = {"alpha": [1e-1, 1e-3]}
    search = FederatedSearchCV(model(FDSKLRegressor), grid, cv=KFold(3)).fit(X, targets)
    twin = GridSearchCV(model(FDSKLRegressor, bandwidth="mean"), grid, cv=KFold(3)).fit(X, targets)
    assert search.best_params_ == twin.best_params_
    np.testing.assert_allclose(search.best_score_, twin.best_score_, atol=0.05)
    # Rows without weight are as if they were not there.
    weights = (np.arange(240) % 2).astype(float)
    turned = np.where(weights > 0, Y, 1 - Y)
    some = FederatedSearchCV(model(), grid, cv=3).fit(X, turned, sample_weight=weights)
    kept = weights > 0
    assert (some.predict(X[kept]) == Y[kept]).mean() > 0.8
    groups = list(GroupKFold(3).split(X, Y, np.arange(240) // 8))
    assert FederatedSearchCV(model(), grid, cv=groups).fit(X, Y).passes_ == 1
    # A fit without later rows leaves out more than it is tested on.
    assert FederatedSearchCV(model(), grid, cv=TimeSeriesSplit(2)).fit(X, Y).passes_ == 4


def test_it_is_an_estimator_of_scikit_learn():
    search = FederatedSearchCV(model(scale="standard"), {"alpha": [1e-1, 1e-3]}, cv=2)
    with pytest.raises(NotFittedError):
        search.predict(X)
    again = clone(search)
    assert again.get_params()["estimator__n_components"] == 64
    assert not hasattr(FederatedSearchCV(model(loss="smooth_hinge"), {}), "predict_proba")
    assert make_pipeline(StandardScaler(), again).fit(X, Y).score(X, Y) > 0.8
    with pytest.raises(InputError, match="kernel must be one of"):
        FederatedSearchCV(model(), {"kernel": ["colour"]}, cv=2).fit(X, Y)


def test_an_estimator_of_several_predicts_its_own_rows_only():
    first, other = model(), model(alpha=1e-2)
    trained = np.arange(240) >= 40
    first.fit_several(X, Y, [(other, trained)])
    assert len(other.predict(X[:40])) == 40
    with pytest.raises(InputError, match="the 40 rows it was not fitted on"):
        other.predict(X)
