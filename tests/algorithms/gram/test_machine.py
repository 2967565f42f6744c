"""Kernel machines on the secure kernel, as jobs have them: those of scikit-learn on all columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from tests.naive import dot_product as naive
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


def trained(
    written: dict,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    tables: tuple[np.ndarray, np.ndarray] = (X, NEW),
):
    """Shards by party, and the leader's f of new rows."""
    values, new = tables
    settings = GRAM.read_settings(written, NAMES, NAMES[:1], targets.shape[1])
    labels = Labels(targets, np.ones(len(X)) if weights is None else weights)
    shards = simulate(federation(values, labels), lambda party: GRAM.train(party, settings)).results
    joined = federation(new, None)
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


def nearest_points(kernel: np.ndarray, signs: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """KOMD's weights by a general solver."""
    inner = kernel * np.outer(signs, signs) + np.diag(penalties)
    found = minimize(
        lambda a: a @ inner @ a / 2,
        np.where(signs > 0, 1 / (signs > 0).sum(), 1 / (signs < 0).sum()),
        jac=lambda a: inner @ a,
        bounds=[(0, None)] * len(signs),
        constraints=[
            {"type": "eq", "fun": lambda a, one=one: a[signs == one].sum() - 1} for one in (-1, 1)
        ],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return np.asarray(found.x) * signs


def test_komd_with_weights():
    weights = (np.arange(60) % 5 > 0) * (1.0 + np.arange(60) % 2)
    written = {"machine": "komd", "gamma": 0.1, "alpha": 0.5, "ring_bits": 64}
    _, found = trained(written, Y[:, None], weights)
    used = weights > 0
    kernel = rbf_kernel(X[used], gamma=0.1)
    hulls = nearest_points(kernel, Y[used], 0.5 / weights[used])
    middle = np.abs(hulls) @ kernel @ hulls / 2
    expected = rbf_kernel(NEW, X[used], gamma=0.1) @ hulls - middle
    np.testing.assert_allclose(found[:, 0], expected, atol=2e-3 * np.ptp(expected))


def test_the_disjunctive_kernel_counts_the_columns_of_all():
    bits, new = (X > 0.3).astype(float), (NEW > 0.3).astype(float)
    written = {"machine": "ridge", "kernel": "disjunctive", "degree": 2, "regression": True}
    _, found = trained(written, X[:, :1], tables=(bits, new))

    def kernel(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.array([[naive.disjunctive(x, z, 2) for z in right] for x in left], float)

    twin = KernelRidge(alpha=1.0, kernel="precomputed").fit(
        kernel(bits, bits), X[:, 0] - X[:, 0].mean()
    )
    expected = twin.predict(kernel(new, bits)) + X[:, 0].mean()
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-6)


@pytest.mark.parametrize("machine", ["svc", "ridge", "komd"])
def test_as_many_landmarks_as_rows_give_the_machine_on_the_whole_kernel(machine):
    written = {"machine": machine, "gamma": 0.1, "ring_bits": 64}
    weights = 1.0 * (np.arange(60) % 5 > 0)
    _, whole = trained(written, Y[:, None], weights)
    shards, found = trained(written | {"landmarks": 60}, Y[:, None], weights)
    np.testing.assert_allclose(found, whole, atol=2e-3 * np.ptp(whole))
    assert {len(one.rows) for one in shards.values()} == {48}


def test_landmark_columns_give_the_kernel_of_nystroem():
    written = {"machine": "ridge", "gamma": 0.1, "ring_bits": 64, "landmarks": 20}
    shards, found = trained(written, Y[:, None])
    kept = np.concatenate([shards[name].rows for name in NAMES], axis=1)
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in kept]
    assert len(set(places)) == 20
    columns, new = rbf_kernel(X, kept, gamma=0.1), rbf_kernel(NEW, kept, gamma=0.1)
    inverse = np.linalg.inv(columns[places])
    twin = KernelRidge(alpha=1.0, kernel="precomputed")
    twin.fit(columns @ inverse @ columns.T, Y - Y.mean())
    expected = twin.predict(new @ inverse @ columns.T) + Y.mean()
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-6)


def test_the_median_distance_is_that_of_landmarks():
    shards, _ = trained({"landmarks": 30}, Y[:, None])
    kept = np.concatenate([shards[name].rows for name in NAMES], axis=1)
    squares = ((kept[:, None] - kept[None]) ** 2).sum(axis=2)
    median = np.median(squares[np.triu_indices(30, 1)])
    assert shards["lender"].kernel.gamma == pytest.approx(1 / median, rel=0.15)


def test_what_a_job_with_landmarks_shows():
    settings = GRAM.read_settings({"landmarks": 50}, NAMES, NAMES[:1])
    (opened,) = GRAM.exposure(settings).opened
    assert opened.at_most.values == 51
    (route,) = [one for one in GRAM.routes(settings) if one.disclosure.name == "support"]
    assert route.senders == ("lender",)
    cost = GRAM.cost(settings, 100, 2)
    assert cost.bytes_sent == {"lender": 0, "bank": 101 * 51 * 4, "shop": 101 * 51 * 4}


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
        ({"kernel": "laplace"}, NAMES[:1], "kernel must be one of"),
        ({"machine": "komd", "regression": True}, NAMES[:1], "machine must be 'ridge'"),
    ],
)
def test_wrong_settings_are_refused(written, labels, wrong):
    with pytest.raises(InputError, match=wrong):
        GRAM.read_settings(written, NAMES, labels)


def test_too_many_rows_are_refused_before_anything_is_sent():
    with pytest.raises(InputError, match="rows must be at most most_rows, 50, unless landmarks"):
        trained({"most_rows": 50}, Y[:, None])
    with pytest.raises(InputError, match="landmarks must be at most 41 for 60 rows"):
        trained({"most_rows": 50, "landmarks": 42}, Y[:, None])
    trained({"most_rows": 50, "landmarks": 41}, Y[:, None])


def test_one_class_is_refused():
    with pytest.raises(InputError, match="labels must be of two classes"):
        trained({}, np.ones((60, 1)))
