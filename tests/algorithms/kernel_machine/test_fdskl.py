"""The training and prediction programs against one place that has all columns."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from tests.naive.phases import batch, local_phases, summed_phases
from tests.naive.pooled import (
    blocks_of,
    pooled_coefficients,
    pooled_features,
    pooled_phases,
    pooled_prediction,
)
from tests.naive.solver import minimise
from tests.options import grouped
from tests.privacy.attacks.label_view import watching
from vertikal import FDSKLClassifier, FDSKLRegressor, Fourier, Stochastic
from vertikal.algorithms.kernel_machine import fdskl, phases
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.data.tables import Table
from vertikal.errors import AgreementError
from vertikal.estimators import base
from vertikal.estimators.simulation import Federation, simulate
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.party.party import Labels, Party, digest

ROWS = 60
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 6))
NEW = GENERATOR.normal(size=(17, 6))
Y = (X[:, 0] * X[:, 3] + 0.2 * GENERATOR.normal(size=ROWS) > 0).astype(int)
PARTIES = {"bank": [4, 0], "shop": [1, 2], "phone": [3, 5]}


def make(estimator=FDSKLClassifier, **settings):
    given = {
        "parties": PARTIES,
        "n_components": 40,
        "random_state": 1,
        "tol": 1e-8,
        "timeout": 20,
    }
    return estimator(**grouped(**(given | settings)))


@pytest.fixture
def views():
    """Labels by party, of the next fit."""
    with watching() as found:
        yield found


@pytest.mark.parametrize("label_parties", [1, ["phone"], ["shop", "bank"], 3])
@pytest.mark.parametrize("ring_bits", [8, 16, 32])
@pytest.mark.parametrize("masking", ["pads", "trees"])
def test_phases_bit_for_bit(views, label_parties, ring_bits, masking):
    if masking == "trees" and label_parties == ["shop", "bank"]:
        label_parties = 3
    model = make(
        label_parties=label_parties,
        feature_map__bits=ring_bits,
        masking=masking,
        solver=Stochastic(n_steps=1),
    ).fit(X, Y)
    expected = pooled_phases(model, X)
    assert set(views) == set(expected)
    for owner, view in views.items():
        assert view.phases.dtype == f"uint{ring_bits}"
        np.testing.assert_array_equal(view.phases, expected[owner])


@pytest.mark.parametrize("kernel", ["laplace", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("directions", ["private", "shared"])
@pytest.mark.filterwarnings("ignore:directions='shared':UserWarning")
def test_phases_bit_for_bit_for_other_kernels(views, kernel, scale, directions):
    model = make(
        kernel=kernel, scale=scale, feature_map__directions=directions, solver=Stochastic(n_steps=1)
    )
    model.fit(X + 3, Y)
    np.testing.assert_array_equal(views["bank"].phases, pooled_phases(model, X + 3)["bank"])


def test_the_height_of_blocks_does_not_matter(views, monkeypatch):
    make().fit(X, Y)
    whole = views.pop("bank").phases
    monkeypatch.setattr(phases, "BLOCK_BYTES", 1)
    model = make().fit(X, Y)
    np.testing.assert_array_equal(views["bank"].phases, whole)
    senders = {
        entry.sender: entry.frames
        for entry in model.ledger_.entries()
        if entry.disclosure.name == "phases"
    }
    assert senders == {"shop": 4, "phone": 4}  # 16 rows at least in a block


@pytest.mark.parametrize("label_parties", [1, 2, 3])
@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
def test_exact_is_the_pooled_solution(loss, label_parties):
    model = make(loss=loss, label_parties=label_parties).fit(X, Y)
    features = pooled_features(model, X)
    leader = model.shards_["bank"]
    signs = np.where(Y == 1, 1.0, -1.0)[:, None]
    best = minimise(features, signs, np.ones(ROWS), loss, model.alpha_, leader.constant)
    # Several label parties end where fixed point does.
    tolerance = 1e-6 if label_parties == 1 else 1e-4
    np.testing.assert_allclose(pooled_coefficients(model), best, atol=tolerance)
    np.testing.assert_allclose(
        model.decision_function(NEW)[:, None],
        pooled_features(model, NEW) @ best + leader.constant,
        atol=tolerance,
    )


@pytest.mark.parametrize("label_parties", [1, 2, 3])
@pytest.mark.parametrize("masking", ["pads", "trees"])
@pytest.mark.parametrize("solver", ["exact", "dsg"])
def test_joint_prediction_is_the_pooled_one(label_parties, masking, solver):
    if masking == "trees" and label_parties == 2:
        label_parties = 3
    model = make(
        label_parties=label_parties, masking=masking, solver=solver, solver__block_size=8
    ).fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(NEW)[:, None], pooled_prediction(model, NEW), atol=1e-6
    )


KINDS = [
    {"functions": "pair"},
    {"functions": "pair", "harmonics": (1, 2)},
    {"functions": "cosine", "harmonics": (3, 1)},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label_parties", [1, 2])
@pytest.mark.parametrize("bits", [8, 16])
def test_several_features_of_each_phase_are_the_pooled_solution(kind, label_parties, bits):
    model = make(feature_map=Fourier(bits=bits, **kind), label_parties=label_parties).fit(X, Y)
    leader = model.shards_["bank"]
    assert len(pooled_coefficients(model)) == 40 * Fourier(**kind).per_phase
    signs = np.where(Y == 1, 1.0, -1.0)[:, None]
    matrix = pooled_features(model, X)
    best = minimise(matrix, signs, np.ones(ROWS), "logistic", model.alpha_, leader.constant)
    tolerance = 1e-6 if label_parties == 1 else 1e-4
    np.testing.assert_allclose(pooled_coefficients(model), best, atol=tolerance)
    np.testing.assert_allclose(
        model.decision_function(NEW)[:, None], pooled_prediction(model, NEW), atol=tolerance
    )


@pytest.mark.parametrize("kind", KINDS)
def test_several_features_of_each_phase_send_the_phases_of_one(kind):
    def sent(**settings):
        model = make(solver=Stochastic(n_steps=1), **settings).fit(X, Y)
        entries = model.ledger_.entries()
        return {e.sender: e.bytes for e in entries if e.disclosure.name == "phases"}

    assert sent(feature_map=Fourier(**kind)) == sent() != {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label_parties", [1, 2])
def test_stochastic_steps_on_several_features_of_each_phase(kind, label_parties):
    given = {"feature_map": Fourier(**kind), "label_parties": label_parties}
    model = make(**given, solver="dsg", solver__block_size=7, solver__n_steps=60).fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(NEW)[:, None], pooled_prediction(model, NEW), atol=1e-6
    )
    # Every feature has its turn.
    assert (pooled_coefficients(model) != 0).all()
    assert model.score(X, Y) > 0.75


def test_predictions_of_a_few_rows_at_a_time(monkeypatch):
    model = make(feature_map=Fourier(**KINDS[1])).fit(X, Y)
    whole = model.decision_function(NEW)
    monkeypatch.setattr(phases, "BLOCK_BYTES", 1)
    np.testing.assert_allclose(model.decision_function(NEW), whole, atol=1e-12)


def test_regression_comes_back_in_the_unit_of_the_targets():
    y = 1000 + 50 * X[:, 0] * X[:, 3]
    model = make(FDSKLRegressor, alpha=1e-3).fit(X, y)
    features = pooled_features(model, X)
    scaled = ((y - y.mean()) / y.std())[:, None]
    best = minimise(features, scaled, np.ones(ROWS), "square", 1e-3, np.zeros(1))
    expected = (pooled_features(model, NEW) @ best) * y.std() + y.mean()
    np.testing.assert_allclose(model.predict(NEW), expected[:, 0], rtol=1e-6)


@pytest.mark.parametrize("solver", ["exact", "dsg"])
@pytest.mark.parametrize("label_parties", [1, 2])
def test_the_same_random_state_gives_the_same_shards_bit_for_bit(solver, label_parties):
    one, two = (
        make(solver=solver, solver__block_size=8, label_parties=label_parties).fit(X, Y)
        for _ in range(2)
    )
    for name in PARTIES:
        first, second = one.shards_[name], two.shards_[name]
        assert first.seed == second.seed
        assert first.settings == second.settings
        assert first.bandwidth == second.bandwidth
        np.testing.assert_array_equal(first.constant, second.constant)
        if first.coefficients is None:
            assert second.coefficients is None
        else:
            np.testing.assert_array_equal(first.coefficients, second.coefficients)
    np.testing.assert_array_equal(one.decision_function(NEW), two.decision_function(NEW))


def test_without_a_random_state_every_fit_draws_anew():
    one, two = (make(random_state=None).fit(X, Y) for _ in range(2))
    assert one.settings_.seed != two.settings_.seed
    seeds = {shard.seed for model in (one, two) for shard in model.shards_.values()}
    assert len(seeds) == 6


def run_parties(shape, label_parties):
    """The training program over meshes whose sums go by ``shape``."""
    settings = FdsklSettings(
        parties=tuple(PARTIES),
        label_parties=label_parties,
        n_components=30,
        bandwidth=2.0,
        seed=5,
    )
    labels = Labels(np.where(Y == 1, 1.0, -1.0)[:, None], np.ones(ROWS))
    meshes, shards = local_meshes(tuple(PARTIES), 20), {}

    def run(name):
        party = Party(
            meshes[name],
            Table(name, tuple(f"column {c}" for c in PARTIES[name]), X[:, PARTIES[name]]),
            label_parties=label_parties,
            labels=labels if name in label_parties else None,
            secret=name.encode().ljust(32, b"."),
            job="shapes",
            settings_digest=digest(settings),
            version="test",
            shape=shape,
        )
        shards[name] = fdskl.train(party, settings)

    threads = [threading.Thread(target=run, args=(name,)) for name in PARTIES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return shards


@pytest.mark.parametrize("label_parties", [("shop",), ("shop", "phone")])
def test_the_shape_of_the_mesh_does_not_change_the_model(label_parties):
    models = [run_parties(shape, label_parties) for shape in ("star", "tree", "cycle")]
    for shards in models[1:]:
        for name in label_parties:
            np.testing.assert_array_equal(shards[name].coefficients, models[0][name].coefficients)
    blocks = {name: X[:, columns] for name, columns in PARTIES.items()}
    assert summed_phases(models[0], blocks, "shop").shape == (ROWS, 30 // len(label_parties))


def test_no_party_sends_its_own_phases(monkeypatch):
    tape = Tape()

    def recording(federation, program):
        return simulate(replace(federation, wrap=lambda mesh: RecordingMesh(mesh, tape)), program)

    monkeypatch.setattr(base, "simulate", recording)
    model = make(solver=Stochastic(n_steps=1), n_components=400).fit(X, Y)
    blocks = blocks_of(model, X)
    for sender in ("shop", "phone"):
        (sent,) = tape.arrays("sum/phases", sender, "bank")
        own = np.array(local_phases(model.shards_[sender], blocks[sender], "bank"))
        # Equal by chance in one of 256 cells.
        assert abs((sent == own).mean() - 1 / 256) < 0.003
        assert np.bincount(sent.ravel(), minlength=256).min() > 0
    assert tape.arrays("sum/phases", "bank") == []


@pytest.mark.parametrize("precondition", [False, True])
def test_the_stochastic_solver_learns(precondition):
    rows = GENERATOR.normal(size=(600, 4))
    labels = (rows[:, 0] * rows[:, 2] > 0).astype(int)
    model = FDSKLClassifier(
        parties=2,
        solver=Stochastic(block_size=32, batch_size=64, n_steps=60, precondition=precondition),
        n_components=256,
        random_state=0,
    ).fit(rows[:400], labels[:400])
    assert model.score(rows[400:], labels[400:]) > 0.8
    assert model.n_iter_ == 60
    assert len(model.objective_) == 60
    assert np.mean(model.objective_[-5:]) < 0.85 * model.objective_[0]


def test_the_preconditioned_step_by_hand():
    """One step of one block: −γ·(C + εI)⁻¹·g with C and g of the batch, C shrunk by F/2B."""
    model = make(
        solver=Stochastic(n_steps=1, precondition=True, batch_size=30, block_size=5, step_size=0.4),
        n_components=10,
        loss="square",
        alpha=0.01,
    ).fit(X, Y)
    rows = batch(model.shards_["bank"], 0, ROWS)
    features = pooled_features(model, X)[rows][:, :5]
    gradient = features.T @ (-2 * np.where(Y[rows] == 1, 1.0, -1.0)) / 30
    covariance = features.T @ features / 30
    shrinkage = 0.5 * 5 / 30
    ridge = shrinkage * np.trace(covariance) / 5
    expected = -0.4 * np.linalg.solve(covariance + ridge * np.eye(5), gradient)
    found = model.shards_["bank"].coefficients[:, 0]
    np.testing.assert_allclose(found[:5], expected, rtol=1e-9)
    assert not found[5:].any()


def test_parties_of_different_settings_do_not_start():
    tables = {
        name: Table(name, tuple(f"column {c}" for c in columns), X[:, columns])
        for name, columns in PARTIES.items()
    }
    tables["shop"] = Table("shop", tables["shop"].columns, X[:50, PARTIES["shop"]])
    federation = Federation(
        tables, ("bank",), None, dict.fromkeys(tables, bytes(32)), "digest", "pads", 5.0
    )
    with pytest.raises(AgreementError, match=r"number of rows is \d+ here and \d+ at "):
        simulate(federation, lambda party: None)
