"""The linear baselines: FD-SVRG step by step, the others by where they come to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from tests.naive.linear import bfgs_inverse, svrg
from tests.naive.phases import derive, draw_integers
from vertikal.algorithms.kernel_machine.label_sums import PARTIAL
from vertikal.algorithms.linear.learner import two_loops
from vertikal.algorithms.linear.settings import LinearSettings
from vertikal.errors import InputError
from vertikal.estimators import base
from vertikal.estimators.baselines import (
    AFSGDVPClassifier,
    AFSVRGVPClassifier,
    AsySQNClassifier,
    FDMLClassifier,
    FDSVRGClassifier,
)
from vertikal.mesh import RecordingMesh, Tape

ROWS, PENALTY = 200, 0.02
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 6))
Y = (X @ GENERATOR.normal(size=6) + GENERATOR.normal(size=ROWS) > 0).astype(int)
SIGNS = np.where(Y == 1, 1.0, -1.0)
PARTIES = {"bank": [4, 0], "shop": [1, 2], "phone": [3, 5]}
POOLED = np.hstack((X[:, [4, 0]], np.ones((ROWS, 1)), X[:, [1, 2, 3, 5]]))
"""All columns in the order of the parties; the first has the intercept."""


def objective(w):
    return np.logaddexp(0, -SIGNS * (POOLED @ w)).mean() + PENALTY / 2 * w @ w


def make(estimator, **settings):
    given = {"alpha": PENALTY, "random_state": 0, "timeout": 20, "batch_size": 8}
    return estimator(PARTIES, **(given | settings))


def weights(model):
    return np.concatenate([model.shards_[name].weights[:, 0] for name in PARTIES])


def test_fd_svrg_is_svrg_on_pooled_columns():
    model = make(FDSVRGClassifier, step_size=0.3, epochs=2, epoch_steps=20).fit(X, Y)
    public = model.settings_.seed.to_bytes(32, "big")

    def batch(number):
        words = draw_integers(derive(public, "batches", str(number)), 8, 64)
        return [word % ROWS for word in words]

    # Twenty steps of three parties are seven rounds.
    expected = svrg(POOLED, SIGNS, batch, step_size=0.3, penalty=PENALTY, epochs=2, rounds=7)
    np.testing.assert_allclose(weights(model), expected, atol=1e-8)
    assert model.updates_ == dict.fromkeys(PARTIES, 14)
    assert model.objective_[-1] == pytest.approx(objective(expected), abs=1e-8)
    np.testing.assert_allclose(model.decision_function(X), POOLED @ expected, atol=1e-8)


@pytest.mark.parametrize(
    ("estimator", "step", "gap"),
    [
        (AFSGDVPClassifier, 0.2, 0.02),
        (AFSVRGVPClassifier, 0.3, 0.01),
        (AsySQNClassifier, 0.1, 0.04),
        (FDMLClassifier, 1.5, 0.03),
    ],
)
def test_without_waiting_they_come_near_the_optimum(estimator, step, gap):
    best = minimize(objective, np.zeros(7)).fun
    model = make(estimator, step_size=step, epochs=2, epoch_steps=150).fit(X, Y)
    assert best <= model.objective_[-1] < best + gap
    assert model.objective_[-1] == pytest.approx(objective(weights(model)), abs=1e-6)
    assert sum(model.updates_.values()) >= 300
    assert min(model.updates_.values()) > 0


def test_fdmls_steps_fall():
    """With the step over √t ten times the first one does no harm; constant it does."""
    falling = make(FDMLClassifier, step_size=3.0, epochs=1, epoch_steps=150).fit(X, Y)
    constant = make(AFSGDVPClassifier, step_size=3.0, epochs=1, epoch_steps=150).fit(X, Y)
    assert falling.objective_[-1] < constant.objective_[-1]


def test_asysqns_direction_is_that_of_the_dense_matrix():
    generator = np.random.default_rng(1)
    curved = generator.normal(size=(5, 5))
    hessian = curved @ curved.T + np.eye(5)
    steps = [generator.normal(size=(5, 1)) for _ in range(4)]
    pairs = [(s, hessian @ s) for s in steps]
    g = generator.normal(size=(5, 1))
    np.testing.assert_allclose(two_loops(g, pairs), bfgs_inverse(pairs, 5) @ g, atol=1e-10)
    np.testing.assert_array_equal(two_loops(g, []), g)


def test_sparse_columns():
    dense, thin = (
        make(FDSVRGClassifier, epochs=1, epoch_steps=9).fit(values, Y)
        for values in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(weights(thin), weights(dense), atol=1e-9)


def test_partial_products_travel_under_pads(monkeypatch):
    tape = Tape()
    original = base.simulate
    monkeypatch.setattr(
        base,
        "simulate",
        lambda federation, program: original(
            federation.__class__(
                **{**vars(federation), "wrap": lambda mesh: RecordingMesh(mesh, tape)}
            ),
            program,
        ),
    )
    model = make(AFSGDVPClassifier, epochs=1, epoch_steps=12).fit(X, Y)
    assert PARTIAL in {entry.disclosure for entry in model.ledger_.entries()}
    sums = tape.arrays(f"sum/{PARTIAL.name}")
    assert sums
    for frame in sums:
        # Words that pads have made uniform; the highest byte of a bare product is 0 or 255.
        high = (frame.ravel() >> np.uint64(56)).astype(int)
        assert frame.dtype == np.uint64
        assert len(frame) < 4 or len(set(high.tolist())) > 2


def test_settings_that_cannot_be():
    names = ("bank", "shop")
    with pytest.raises(InputError, match="label_parties must be all parties"):
        LinearSettings(parties=names, label_parties=names[:1])
    with pytest.raises(InputError, match="y must be of two classes, got 3 classes"):
        make(AFSGDVPClassifier).fit(X, np.arange(ROWS) % 3)
    with pytest.raises(InputError, match="outputs must be 1"):
        LinearSettings(parties=names, label_parties=names, outputs=2)
