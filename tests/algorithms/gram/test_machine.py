"""Kernel machines on the secure kernel, as jobs have them: those of scikit-learn on all columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from vertikal.algorithms.algorithm import LEVELS
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.estimators.simulation import Federation, simulate
from vertikal.party.party import Labels
from vertikal.secure.keys.prg import fresh_key

NAMES = ("lender", "bank", "shop")
GRAM = algorithm_named("gram")
DRAW = np.random.default_rng(5)
X = DRAW.normal(size=(60, 6))
Y = np.sign(X[:, 0] * X[:, 3] + X[:, 5])
NEW = DRAW.normal(size=(9, 6))


def federation(values: np.ndarray, labels: Labels | None) -> Federation:
    blocks = np.split(values, 3, axis=1)
    tables = {n: Table(n, ("a", "b"), b) for n, b in zip(NAMES, blocks, strict=True)}
    secrets = {name: fresh_key() for name in NAMES}
    return Federation(tables, NAMES[:1], labels, secrets, "", "pads", 60.0)


def trained(written: dict, targets: np.ndarray, weights: np.ndarray | None = None):
    """Shards by party, and the leader's f of new rows."""
    settings = GRAM.read_settings(written, NAMES, NAMES[:1], targets.shape[1])
    labels = Labels(targets, np.ones(len(X)) if weights is None else weights)
    shards = simulate(federation(X, labels), lambda party: GRAM.train(party, settings)).results
    joined = federation(NEW, None)
    found = simulate(joined, lambda party: GRAM.predict(party, shards[party.name])).results
    assert all(found[name] is None for name in NAMES[1:])
    return shards, found["lender"]


def test_a_support_vector_machine():
    written = {"gamma": 0.1, "C": 2.0, "ring_bits": 64}
    shards, found = trained(written, Y[:, None])
    twin = SVC(C=2.0, gamma=0.1).fit(X, Y)
    np.testing.assert_allclose(found[:, 0], twin.decision_function(NEW), atol=1e-6)
    assert shards["lender"].support.tolist() == sorted(twin.support_.tolist())
    for name in NAMES[1:]:
        assert not shards[name].support.size
        assert not shards[name].coefficients.size
        assert shards[name].kernel is None


def test_ridge_regression_of_several_outputs_with_weights():
    targets = np.stack((X[:, 0] * X[:, 3], X[:, 5]), axis=1)
    weights = DRAW.random(60) * (np.arange(60) % 5 > 0)
    written = {
        "machine": "ridge",
        "kernel": "polynomial",
        "degree": 2,
        "gamma": 0.5,
        "alpha": 0.3,
        "ring_bits": 64,
        "regression": True,
    }
    shards, found = trained(written, targets, weights)
    means = np.average(targets, axis=0, weights=weights)
    used = weights > 0
    for output in range(2):
        twin = KernelRidge(alpha=0.3, kernel="poly", degree=2, gamma=0.5, coef0=1.0)
        twin.fit(X[used], targets[used, output] - means[output], weights[used])
        expected = twin.predict(NEW) + means[output]
        np.testing.assert_allclose(found[:, output], expected, atol=1e-6)
    assert set(shards["lender"].support) == set(np.flatnonzero(used))


def test_what_a_job_shows():
    settings = GRAM.read_settings({}, NAMES, NAMES[:1])
    exposure = GRAM.exposure(settings)
    assert exposure.level == "kernel"
    assert "all inner products of rows over all columns" in LEVELS["kernel"]
    (opened,) = exposure.opened
    assert (opened.label_party, opened.at_most.values) == ("lender", 20_000)
    assert "up to a rotation" in GRAM.prediction_shows(settings)
    assert GRAM.probabilities(settings, np.zeros((1, 1))) is None
    assert "kernel" in {one.name for one in GRAM.messages(settings)}
    cost = GRAM.cost(settings, 100, 2)
    assert cost.bytes_sent == {"lender": 0, "bank": 20_200, "shop": 20_200}


def test_owners_are_told_that_training_rows_are_kept():
    shards, _ = trained({"gamma": 0.1}, Y[:, None])
    assert GRAM.facts_for_owner(shards["bank"]) == {"training rows kept": 60}
    assert GRAM.facts_for_owner(shards["lender"])["gamma"] == 0.1
    assert GRAM.known_answers(shards["bank"], NEW[:, :2]).shape == (9, 16)


@pytest.mark.parametrize(
    ("written", "labels", "wrong"),
    [
        ({}, NAMES[:2], "label_parties must be one party"),
        ({"regression": True}, NAMES[:1], "machine must be 'ridge' for regression"),
        ({"kernel": "conjunctive", "scale": "standard"}, NAMES[:1], "scale must be left out"),
        ({"kernel": "disjunctive"}, NAMES[:1], "kernel must be one of"),
    ],
)
def test_wrong_settings_are_refused(written, labels, wrong):
    with pytest.raises(InputError, match=wrong):
        GRAM.read_settings(written, NAMES, labels)


def test_too_many_rows_are_refused_before_anything_is_sent():
    with pytest.raises(InputError, match="rows must be at most most_rows, 50; FDSKL takes any"):
        trained({"most_rows": 50}, Y[:, None])


def test_one_class_is_refused():
    with pytest.raises(InputError, match="labels must be of two classes"):
        trained({}, np.ones((60, 1)))
