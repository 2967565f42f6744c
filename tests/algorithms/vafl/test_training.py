"""VAFL: a run is replayed on a plain twin, and its messages are those that the ledger names."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.naive.vafl import replay
from vertikal.algorithms.vafl.settings import VaflSettings
from vertikal.algorithms.vafl.training import EMBEDDINGS, ROWS, SLOPES
from vertikal.errors import InputError
from vertikal.estimators import base
from vertikal.estimators.baselines import VAFLClassifier
from vertikal.mesh import RecordingMesh, Tape

COUNT = 80
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(COUNT, 5))
Y = (X[:, 0] * X[:, 2] + X[:, 4] > 0).astype(int)  # no linear rule finds the product
PARTIES = {"bank": [0, 1], "shop": [2], "phone": [3, 4]}
SIZES = {"embedding": 2, "hidden": 3, "batch_size": 4, "alpha": 0.01}


def make(**settings):
    given = {"parties": PARTIES, "random_state": 0, "timeout": 20}
    return VAFLClassifier(**{**given, **SIZES, **settings})


def recorded(monkeypatch, model):
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
    return model.fit(X, Y), tape


def parts(model):
    """The layers and the head as the twin has them."""
    layers = {
        name: {"W": shard.layer.weights.copy(), "b": shard.layer.offsets.copy()}
        for name, shard in model.shards_.items()
    }
    head = model.shards_["bank"].head
    return layers, {
        "V": head.layer.weights.copy(),
        "c": head.layer.offsets.copy(),
        "u": head.output[:, 0].copy(),
        "d": np.array([head.constant]),
    }


def test_replayed_steps_give_the_network(monkeypatch):
    # Steps of no length leave the drawn weights as they are.
    layers, head = parts(make(n_steps=1, step_size=1e-200).fit(X, Y))
    model, tape = recorded(monkeypatch, make(n_steps=12, step_size=0.3))
    order = model.shards_["bank"].order
    assert len(order) == len(model.trace_) == 12
    assert model.updates_ == {"bank": 0, **{n: order.count(n) for n in ("shop", "phone")}}
    batches = {
        name: iter(tape.arrays(f"message/{ROWS.name}", name, "bank")) for name in ("shop", "phone")
    }
    columns = {name: X[:, own] for name, own in PARTIES.items()}
    replay(
        order,
        batches,
        columns,
        layers,
        head,
        np.where(Y == 1, 1.0, -1.0),
        server="bank",
        step_size=0.3,
        penalty=0.01,
    )
    found, found_head = parts(model)
    for name, layer in layers.items():
        for key, expected in layer.items():
            np.testing.assert_allclose(found[name][key], expected, atol=1e-5)
    for key, expected in head.items():
        np.testing.assert_allclose(found_head[key], expected, atol=1e-5)
    # Prediction is by the latest layers of all.
    h = np.hstack([np.tanh(columns[n] @ layers[n]["W"] + layers[n]["b"]) for n in PARTIES])
    f = np.tanh(h @ head["V"] + head["c"]) @ head["u"] + head["d"]
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-4)


def test_messages_are_embeddings_slopes_and_rows(monkeypatch):
    model, tape = recorded(monkeypatch, make(n_steps=6))
    kinds = {entry.disclosure.name for entry in model.ledger_.entries()}
    assert {ROWS.name, EMBEDDINGS.name, SLOPES.name} <= kinds
    for name in ("shop", "phone"):
        first, *rest = tape.arrays(f"message/{EMBEDDINGS.name}", name, "bank")
        assert first.shape == (COUNT, 2)
        assert all(one.shape == (4, 2) and np.abs(one).max() < 1 for one in rest)
        # The label party sends slopes only, and an empty answer at the end.
        answers = tape.arrays(f"message/{SLOPES.name}", "bank", name)
        assert [len(one) for one in answers] == [4] * (len(answers) - 1) + [0]
        assert len(answers) == len(rest)
        assert not tape.arrays(f"message/{EMBEDDINGS.name}", "bank", name)


def test_it_learns_what_no_linear_rule_does():
    given = {"embedding": 8, "hidden": 16, "batch_size": 16, "step_size": 0.5, "alpha": 0.0}
    model = make(n_steps=400, **given).fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_sparse_columns():
    """With one other party the order of steps is fixed, and so is the network."""
    two = {"bank": [0, 1], "shop": [2, 3, 4]}
    dense, thin = (
        make(parties=two, n_steps=5).fit(values, Y).decision_function(X)
        for values in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(thin, dense, atol=1e-6)
    assert np.ptp(dense) > 0


def test_refused_settings():
    names = ("bank", "shop")
    with pytest.raises(InputError, match="label_parties must be one, which is the server"):
        VaflSettings(parties=names, label_parties=names)
    with pytest.raises(InputError, match="y must be of two classes, got 3 classes"):
        make().fit(X, np.arange(COUNT) % 3)
    with pytest.raises(InputError, match="outputs must be 1"):
        VaflSettings(parties=names, label_parties=names[:1], outputs=2)
