"""The stochastic solver's step: the automatic one is stable, one that diverges is an error."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal import FDSKLClassifier, FDSKLRegressor
from vertikal.errors import InputError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(300, 5))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


def make(estimator, **settings):
    given = {
        "parties": 2,
        "n_directions": 128,
        "solver": "dsg",
        "random_state": 0,
        "timeout": 10,
        "steps": 150,
    }
    return estimator(**(given | settings))


@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
@pytest.mark.parametrize(("samples", "features"), [(64, 64), (64, 8), (8, 64)])
def test_the_automatic_step_is_stable_for_every_loss(loss, samples, features):
    model = make(FDSKLClassifier, loss=loss, samples=samples, features=features).fit(X, Y)
    values = model.decision_function(X)
    assert np.abs(values).max() < 10
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
def test_the_automatic_step_is_stable_for_the_papers_own_rule(loss):
    model = make(FDSKLClassifier, loss=loss, samples=1, features=1, steps=600).fit(X, Y)
    assert np.abs(model.decision_function(X)).max() < 10


@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
@pytest.mark.parametrize(("samples", "features"), [(64, 64), (64, 8), (256, 64)])
def test_the_automatic_step_is_stable_with_a_preconditioner(loss, samples, features):
    model = make(
        FDSKLClassifier, loss=loss, samples=samples, features=features, precondition=True
    ).fit(X, Y)
    assert np.abs(model.decision_function(X)).max() < 60
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("precondition", [False, True])
@pytest.mark.parametrize("steps", [None, 150])
def test_the_automatic_step_suits_regression(precondition, steps):
    y = 100 + 20 * np.sin(X[:, 0]) * X[:, 1]
    model = make(FDSKLRegressor, precondition=precondition, steps=steps).fit(X, y)
    assert model.score(X, y) > 0


@pytest.mark.parametrize("label_parties", [1, 2])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_that_diverges_is_an_error_that_names_it(label_parties):
    model = make(
        FDSKLRegressor, parties=3, step_size=1e4, penalty=1e-6, label_parties=label_parties
    )
    with pytest.raises((InputError, FloatingPointError), match="step_size") as caught:
        model.fit(X, X[:, 0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("estimator", [FDSKLClassifier, FDSKLRegressor])
def test_a_step_beyond_the_automatic_penalty_is_refused(estimator):
    """1 − γλ must stay positive, also where λ = 'auto' depends on the rows."""
    with pytest.raises(InputError, match=r"^step_size must be below 1 / penalty = .*, got 1000000"):
        make(estimator, step_size=1e6, penalty="auto").fit(X, Y)
