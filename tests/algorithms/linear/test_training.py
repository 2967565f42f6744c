"""The linear baselines: every step is the plain one, and where the steps come to."""

from __future__ import annotations

import math
import threading
from collections import defaultdict

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from tests.naive.linear import bfgs_inverse, block_gradient, block_turn, svrg
from tests.naive.phases import derive, draw_integers
from vertikal.algorithms.kernel_machine.label_sums import PARTIAL
from vertikal.algorithms.linear.learner import LinearLearner, two_loops
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


@pytest.fixture
def recorded(monkeypatch):
    """By thread: what each party's steps read and did, and the f of all rows that epochs begin by.

    A step is (its rows, f of them, the change of the weights); an epoch is (steps before it, f).
    """
    steps, epochs = defaultdict(list), defaultdict(list)
    change, take_snapshot = LinearLearner.change, LinearLearner.take_snapshot

    def changing(self, batch, rows, f, columns):
        found = change(self, batch, rows, f, columns)
        mine = steps[threading.current_thread().name]
        mine.append((np.array(rows), np.array(f)[:, 0], np.array(found)[:, 0]))
        return found

    def taking(self, f):
        thread = threading.current_thread().name
        epochs[thread].append((len(steps[thread]), np.array(f)[:, 0]))
        take_snapshot(self, f)

    monkeypatch.setattr(LinearLearner, "change", changing)
    monkeypatch.setattr(LinearLearner, "take_snapshot", taking)
    return steps, epochs


def plain_steps(method, X, steps, epochs, step_size):
    """The weights before each step and after the last, and each step by the rule written out."""
    w, last, pairs, found = np.zeros(X.shape[1]), np.zeros(X.shape[1]), [], []
    begun, snapshot = dict(epochs), None
    for number, (rows, f, change) in enumerate(steps):
        if number in begun:
            snapshot = w, begun[number]
        g = block_gradient(X, SIGNS, rows, f, w, PENALTY)
        if method == "afsvrg-vp":
            before, whole = snapshot
            everybody = range(ROWS)
            full = block_gradient(X, SIGNS, everybody, whole, before, PENALTY)
            g = g - block_gradient(X, SIGNS, rows, whole[rows], before, PENALTY) + full
        if method == "asysqn":
            moved, last = w - last, w
            turned = block_turn(X, rows, f, moved, PENALTY)
            if moved @ turned > 1e-10 * moved @ moved > 0:
                pairs = [*pairs, (moved[:, None], turned[:, None])][-10:]
            g = bfgs_inverse(pairs, len(w)) @ g if pairs else g
        size = step_size / math.sqrt(number + 1) if method == "fdml" else step_size
        found.append((change, -size * g))
        w = w + change
    return w, found


@pytest.mark.parametrize(
    "estimator", [AFSGDVPClassifier, AFSVRGVPClassifier, AsySQNClassifier, FDMLClassifier]
)
def test_every_step_without_waiting_is_the_plain_one(recorded, estimator):
    """Each step follows from what it read, in any order, and the weights are their sum."""
    model = make(estimator, step_size=0.2, epochs=2, epoch_steps=60).fit(X, Y)
    columns = {name: X[:, own] for name, own in PARTIES.items()}
    columns["bank"] = np.column_stack((columns["bank"], np.ones(ROWS)))
    threads, epochs = recorded
    for name, own in columns.items():
        steps = [one for thread, those in threads.items() if name in thread for one in those]
        begun = [one for thread, those in epochs.items() if name in thread for one in those]
        assert len(begun) == (2 if estimator is AFSVRGVPClassifier else 0)
        w, found = plain_steps(estimator.method, own, steps, begun, 0.2)
        assert len(found) == model.updates_[name]
        for change, expected in found:
            np.testing.assert_allclose(change, expected, atol=1e-8)
        np.testing.assert_allclose(model.shards_[name].weights[:, 0], w, atol=1e-9)


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
