"""Stochastic steps: the automatic size is stable, divergence is an error, decay is lazy."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.options import grouped
from vertikal import FDSKLClassifier, FDSKLRegressor, Stochastic
from vertikal.algorithms.kernel_machine.stochastic.learner import Expansion
from vertikal.errors import InputError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(300, 5))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


def make(estimator, **settings):
    given = {
        "parties": 2,
        "n_components": 128,
        "solver": Stochastic(n_steps=150),
        "random_state": 0,
        "timeout": 60,
    }
    return estimator(**grouped(**(given | settings)))


@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
@pytest.mark.parametrize(("samples", "features"), [(64, 64), (64, 8), (8, 64)])
def test_the_automatic_step_is_stable_for_every_loss(loss, samples, features):
    model = make(
        FDSKLClassifier, loss=loss, solver__batch_size=samples, solver__block_size=features
    ).fit(X, Y)
    values = model.decision_function(X)
    assert np.abs(values).max() < 10
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
def test_the_automatic_step_is_stable_for_the_papers_own_rule(loss):
    model = make(
        FDSKLClassifier, loss=loss, solver__batch_size=1, solver__block_size=1, solver__n_steps=600
    ).fit(X, Y)
    assert np.abs(model.decision_function(X)).max() < 10


@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
@pytest.mark.parametrize(("samples", "features"), [(64, 64), (64, 8), (256, 64)])
def test_the_automatic_step_is_stable_with_a_preconditioner(loss, samples, features):
    model = make(
        FDSKLClassifier,
        loss=loss,
        solver__batch_size=samples,
        solver__block_size=features,
        solver__precondition=True,
    ).fit(X, Y)
    assert np.abs(model.decision_function(X)).max() < 60
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("precondition", [False, True])
@pytest.mark.parametrize("steps", [None, 150])
def test_the_automatic_step_suits_regression(precondition, steps):
    y = 100 + 20 * np.sin(X[:, 0]) * X[:, 1]
    model = make(FDSKLRegressor, solver__precondition=precondition, solver__n_steps=steps).fit(X, y)
    assert model.score(X, y) > 0


@pytest.mark.parametrize("label_parties", [1, 2])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_that_diverges_is_an_error_that_names_it(label_parties):
    model = make(
        FDSKLRegressor, parties=3, solver__step_size=1e4, alpha=1e-6, label_parties=label_parties
    )
    with pytest.raises((InputError, FloatingPointError), match="step_size") as caught:
        model.fit(X, X[:, 0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("estimator", [FDSKLClassifier, FDSKLRegressor])
def test_a_step_beyond_the_automatic_penalty_is_refused(estimator):
    """1 − γλ must stay positive, also where λ = 'auto' depends on the rows."""
    with pytest.raises(InputError, match=r"^step_size must be below 1 / alpha = .*, got 1000000"):
        make(estimator, solver__step_size=1e6, alpha="auto").fit(X, Y)


STEPS = st.lists(
    st.tuples(st.floats(0.01, 1.0), st.integers(0, 5), st.integers(1, 3), st.floats(-1, 1)),
    max_size=40,
)


@hypothesis.settings(deadline=None)
@hypothesis.given(steps=STEPS, outputs=st.integers(1, 2))
def test_lazy_equals_plain(steps, outputs):
    lazy, plain = Expansion(8, outputs), np.zeros((8, outputs))
    for factor, start, count, value in steps:
        columns = slice(start, start + count)
        lazy.decay(factor)
        plain *= factor
        lazy.add(columns, np.full((count, outputs), value))
        plain[columns] += value
        np.testing.assert_allclose(lazy.coefficients(), plain, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(lazy.coefficients(slice(2, 5)), plain[2:5], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("factor", [0.5, -0.5, 0.999, 1e-3])
def test_the_factor_may_vanish_many_times_over(factor):
    """0.5 to the 5000 is no double any more; the newest coefficients must not notice."""
    lazy, plain = Expansion(3, 1), np.zeros((3, 1))
    for step in range(5000):
        lazy.decay(factor)
        plain *= factor
        columns = slice(step % 3, step % 3 + 1)
        lazy.add(columns, np.ones((1, 1)))
        plain[columns] += 1
    assert np.isfinite(lazy.coefficients()).all()
    np.testing.assert_allclose(lazy.coefficients(), plain, rtol=1e-9)


def test_a_factor_of_zero_forgets_everything():
    expansion = Expansion(2, 1)
    expansion.add(slice(None), np.ones((2, 1)))
    expansion.decay(0.0)
    expansion.add(slice(1, 2), np.full((1, 1), 3.0))
    assert expansion.coefficients().tolist() == [[0.0], [3.0]]


def test_coefficients_are_a_copy():
    expansion = Expansion(2, 1)
    expansion.coefficients()[:] = 7
    assert expansion.coefficients().tolist() == [[0.0], [0.0]]
