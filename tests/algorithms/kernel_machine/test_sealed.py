"""disclosure="sealed": the model of the same steps in the open, of which nobody saw any."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.naive import sealed as naive
from tests.options import grouped
from vertikal import FDSKLClassifier, FDSKLRegressor
from vertikal.algorithms.kernel_machine import sealed
from vertikal.algorithms.kernel_machine import values as hidden
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.phases import direction_block
from vertikal.algorithms.kernel_machine.sealed_residuals import PairwiseSquareResiduals
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.data.scaling import learn_scaling
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.estimators.columns import cut
from vertikal.estimators.simulation import Federation, simulate
from vertikal.node.models.store import ModelStore
from vertikal.party.party import Labels, digest
from vertikal.secure.keys import prg
from vertikal.secure.sealed.sealed_features import MATRIX_BITS
from vertikal.solvers.sealed_steps import COEFFICIENT_BITS, VALUE_BITS, sealed_steps

ROWS = 120
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 8))
NEW = GENERATOR.normal(size=(50, 8))
Y = (X[:, 0] * X[:, 3] + 0.3 * GENERATOR.normal(size=ROWS) > 0.2).astype(int)
PARTIES = {"bank": [4, 0], "shop": [1, 2], "phone": [3, 5], "post": [6, 7]}
D = 32


def make(estimator=FDSKLClassifier, **settings):
    given = {
        "parties": PARTIES,
        "n_components": D,
        "bandwidth": 2.0,
        "alpha": 1e-2,
        "disclosure": "sealed",
        "max_iter": 60,
        "random_state": 1,
        "timeout": 60,
    }
    if estimator is FDSKLClassifier:
        given["loss"] = "square"
    return estimator(**grouped(**(given | settings)))


def coefficients(model):
    """Add up what label party and helper have, which nobody has alone."""
    total = sum(model.shards_[name].coefficient_share for name in ("bank", "shop"))
    return total.view(np.int64) * 2.0**-COEFFICIENT_BITS / np.sqrt(2 / len(total))


def features(shards, columns, X):
    """Φ in the open, from everybody's seeds."""
    settings = next(iter(shards.values())).settings
    maps = {
        name: direction_block(shard, draw_directions(shard, settings.label_parties[0])).feature_map
        for name, shard in shards.items()
    }
    local = [maps[name].local(X[:, numbers]) for name, numbers in columns.items()]
    return np.sqrt(2 / D) * np.cos(np.add.reduce(local, dtype=np.uint8) * (2 * np.pi / 256))


def steps_of(alpha=1e-2, iterations=60, curvature=2.0, rows=ROWS):
    return sealed_steps(rows, D, alpha, iterations, curvature, MATRIX_BITS)


def test_every_step_is_the_plain_one():
    model = make().fit(X, Y)
    phi = features(model.shards_, PARTIES, X)
    y = np.where(Y > 0, 1.0, -1.0)
    y -= y.mean()
    expected = naive.with_momentum(
        phi.tolist(),
        lambda f: (2 / ROWS * (np.array(f) - y)).tolist(),
        1e-2,
        steps_of().step_size,
        60,
    )
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        coefficients(model)[:, 0], expected, rtol=0, atol=2e-3 * scale, strict=True
    )
    f = features(model.shards_, PARTIES, NEW) @ np.array(expected) + np.where(Y > 0, 1, -1).mean()
    np.testing.assert_allclose(model.decision_function(NEW), f, rtol=0, atol=3e-3)


@pytest.mark.parametrize("ring_bits", [8, 16])
@pytest.mark.parametrize("functions", ["cosine", "pair"])
def test_with_enough_steps_it_is_the_ridge(ring_bits, functions):
    same = {"alpha": 0.05, "max_iter": 300, "feature_map__bits": ring_bits}
    same["feature_map__functions"] = functions
    opened = make(disclosure="open", **same, tol=1e-8).fit(X, Y)
    model = make(**same).fit(X, Y)
    expected = opened.shards_["bank"].coefficients
    np.testing.assert_allclose(
        coefficients(model), expected, rtol=0, atol=0.02 * np.abs(expected).max(), strict=True
    )
    scale = np.abs(opened.decision_function(NEW)).max()
    np.testing.assert_allclose(
        model.decision_function(NEW), opened.decision_function(NEW), rtol=0, atol=0.01 * scale
    )


def test_weights_several_classes_and_regression():
    same = {"alpha": 0.05, "max_iter": 300}
    weights = GENERATOR.uniform(0.1, 3, ROWS)
    classes = np.digitize(X[:, 0] * X[:, 3], [-0.5, 0.5])
    for estimator, y, reads in (
        (FDSKLClassifier, classes, "decision_function"),
        (FDSKLRegressor, 50 + 7 * X[:, 0] * X[:, 3], "predict"),
    ):
        opened = make(estimator, disclosure="open", **same).fit(X, y, sample_weight=weights)
        model = make(estimator, **same).fit(X, y, sample_weight=weights)
        f, g = (getattr(m, reads)(NEW) for m in (opened, model))
        np.testing.assert_allclose(g, f, rtol=0, atol=0.02 * np.abs(f - f.mean()).max())
        assert model.n_iter_ == 300
        assert model.objective_ == []


def test_the_automatic_penalty_does_not_depend_on_weights():
    model = make(alpha="auto").fit(X, Y, sample_weight=np.full(ROWS, 7.0))
    assert model.alpha_ == pytest.approx(0.1 / ROWS)
    assert model.score(X, Y) > 0.75


def test_nobody_has_the_coefficients():
    one, other = make().fit(X, Y), make().fit(X, Y)
    for name in PARTIES:
        assert one.shards_[name].coefficients is None
        held = one.shards_[name].coefficient_share
        assert (held is not None) == (name in ("bank", "shop"))
        if held is not None:
            # The same model, cut otherwise: a share alone is fresh in every run.
            assert held.dtype == np.uint64
            assert not (held == other.shards_[name].coefficient_share).any()
    np.testing.assert_allclose(coefficients(one), coefficients(other), rtol=0, atol=2e-3)
    halves = [one.shards_[name].coefficient_share for name in ("bank", "shop")]
    for half in halves:
        assert np.abs(half.view(np.int64) * 2.0**-COEFFICIENT_BITS).mean() > 2.0**30


def test_a_share_survives_its_file(tmp_path):
    shards = make(feature_map__functions="pair").fit(X, Y).shards_
    for name in PARTIES:
        models = ModelStore(tmp_path / name)
        models.save("credit", shards[name], FDSKL)
        held = models.load("credit", FDSKL).shard.coefficient_share
        if shards[name].coefficient_share is None:
            assert held is None
        else:
            assert np.array_equal(held, shards[name].coefficient_share)


def test_the_ledger_says_that_training_opens_nothing():
    model = make().fit(X, Y)
    routes = {
        (entry.sender, entry.receiver, entry.disclosure.name)
        for entry in model.ledger_.entries()
        if entry.disclosure.name != "agreement"
    }
    assert routes == {
        ("post", "bank", "dealer's keys"),
        ("post", "shop", "dealer's keys"),
        ("phone", "shop", "phase shares"),
        ("post", "shop", "correlation"),
        ("bank", "shop", "opening"),
        ("shop", "bank", "opening"),
        ("bank", "shop", "difference"),
        ("shop", "bank", "difference"),
        ("bank", "shop", "factors"),
        ("bank", "shop", "shared vectors"),
        ("shop", "bank", "shared vectors"),
        ("post", "shop", "product masks"),
    }
    for disclosure in model.ledger_.disclosures():
        if disclosure.name != "agreement":
            assert disclosure.learns == "nothing: uniform to its receiver, whatever the data"


def outcome_of(model, X):
    """A joint prediction, with its ledger."""
    tables = cut(X, model.columns_, None)
    federation = Federation(
        tables,
        ("bank",),
        None,
        {name: prg.fresh_key() for name in tables},
        digest(model.settings_),
        "pads",
        60.0,
    )
    return simulate(federation, lambda party: sealed_predict(party, model.shards_[party.name]))


def sealed_predict(party, shard):
    return [np.array(f) for _, f in sealed.sealed_predictions(party, shard)]


def test_predictions_are_opened_to_the_label_party_alone(monkeypatch):
    model = make().fit(X, Y)
    monkeypatch.setattr(sealed, "SPAN_CELLS", D * 20)
    outcome = outcome_of(model, NEW)
    assert {name: len(got) for name, got in outcome.results.items()} == {
        "bank": 3,
        "shop": 0,
        "phone": 0,
        "post": 0,
    }
    f = np.concatenate(outcome.results["bank"])[:, 0] + model.shards_["bank"].constant
    np.testing.assert_allclose(f, model.decision_function(NEW), rtol=0, atol=2e-3)
    opened = [e for e in outcome.ledger.entries() if e.disclosure.name == "predictions"]
    assert [(e.sender, e.receiver, e.frames) for e in opened] == [("shop", "bank", 3)]
    assert "f of the rows that were asked for" in opened[0].disclosure.learns


def test_a_dealer_without_columns_and_two_parties():
    parties = {"bank": [0, 1, 2, 3], "shop": [4, 5, 6, 7]}
    model = make(parties=parties, disclosure__dealer="notary", max_iter=100).fit(X, Y)
    assert model.settings_.assistants() == ("shop", "notary")
    assert roc_auc_score(Y, model.decision_function(X)) > 0.8


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loss": "logistic"}, "loss must be 'square' with disclosure='sealed', got 'logistic'"),
        ({"solver": "dsg"}, "solver must be 'exact' with disclosure='sealed', got 'dsg'"),
        (
            {"disclosure__bits": 32},
            r"must be some of \['dealer', 'helper', 'prediction_bits'\], got 'bits'",
        ),
        ({"label_parties": 2}, "label_parties must be one with disclosure='sealed'"),
        ({"bandwidth": "median"}, "bandwidth must be a number or 'mean' with disclosure='sealed'"),
        ({"parties": {"bank": [0], "shop": [1]}}, "needs two parties without labels, a helper"),
        ({"cache_size": 1000}, f"cache_size must be None or at least {ROWS * D * 16} bytes"),
        ({"feature_map": "landmarks"}, "feature_map must be 'fourier' with disclosure='sealed'"),
        ({"max_iter": 10**5, "alpha": 1e-9}, "disclosure='sealed' cannot hold 120 rows"),
    ],
)
def test_what_is_refused(settings, said):
    with pytest.raises(InputError, match=said) as caught:
        make(**settings).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_weights_that_do_not_fit():
    weights = np.full(ROWS, 1e-13)
    weights[3] = 1.0
    with pytest.raises(InputError, match="sample_weight and targets must be less unequal with"):
        make(FDSKLRegressor).fit(X, 1e9 * (np.arange(ROWS) == 7), sample_weight=weights)


def test_the_mean_distance_is_one_number():
    model = make(bandwidth="mean", scale="standard").fit(X, Y)
    assert 1 < model.bandwidth_ < 5
    entries = [e for e in model.ledger_.entries() if e.disclosure.name == "mean distance"]
    assert {e.receiver for e in entries} == {"bank"}
    assert max(e.bytes for e in entries) < 200


def pairwise(y, iterations=40, alpha=1e-2):
    """A sealed fit of the pairwise square loss: its coefficients, and the features."""
    settings = FdsklSettings(
        parties=tuple(PARTIES),
        label_parties=("bank",),
        n_components=D,
        bandwidth=2.0,
        alpha=alpha,
        loss="square",
        disclosure="sealed",
        max_iter=iterations,
    )
    tables = {
        name: Table(name, tuple(map(str, numbers)), X[:, numbers])
        for name, numbers in PARTIES.items()
    }
    secrets = {name: prg.derive_key(bytes(32), name) for name in tables}
    labels = Labels(np.where(y > 0, 1.0, -1.0)[:, None], np.ones(len(y)))
    federation = Federation(tables, ("bank",), labels, secrets, digest(settings), "pads", 60.0)

    def program(party):
        scaling = learn_scaling(party.table, None)
        shard = Shard(party.name, settings, party.table.columns, scaling, 2.0, party.secret("m"))
        return sealed.train_sealed(party, shard, party.labels, PairwiseSquareResiduals)

    shards = simulate(federation, program).results
    total = sum(shards[name].coefficient_share for name in ("bank", "shop"))
    found = total.view(np.int64)[:, 0] * 2.0**-COEFFICIENT_BITS / np.sqrt(2 / D)
    return found, features(shards, PARTIES, X)


def test_the_pairwise_square_loss_takes_the_steps_of_all_pairs():
    found, phi = pairwise(Y)
    expected = naive.with_momentum(
        phi.tolist(),
        lambda f: naive.pairwise_slopes(f, Y),
        1e-2,
        steps_of(iterations=40, curvature=8.0).step_size,
        40,
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-3 * np.abs(expected).max())
    assert roc_auc_score(Y, phi @ found) > 0.7


def test_pairs_with_few_positives():
    y = (np.arange(ROWS) % 40 == 0).astype(int)
    found, phi = pairwise(y, iterations=25)
    expected = naive.with_momentum(
        phi.tolist(),
        lambda f: naive.pairwise_slopes(f, y),
        1e-2,
        steps_of(iterations=25, curvature=8.0).step_size,
        25,
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-3 * np.abs(expected).max())


def test_pairs_need_two_classes():
    with pytest.raises(InputError, match="labels must be of two classes for a pairwise loss"):
        pairwise(np.ones(ROWS))


def test_plain_pairwise_slopes_are_derivatives():
    """The twin itself, by finite differences."""
    f, y, h = GENERATOR.normal(size=12), (np.arange(12) % 3 == 0).astype(int), 1e-6

    def loss(f):
        gaps = 1 - f[y > 0][:, None] + f[y == 0][None]
        return np.square(gaps).mean()

    slopes = [(loss(f + h * e) - loss(f - h * e)) / (2 * h) for e in np.eye(12)]
    np.testing.assert_allclose(naive.pairwise_slopes(f, y), slopes, atol=1e-6)


def test_blocks_of_any_height(monkeypatch):
    whole = make().fit(X, Y)
    monkeypatch.setattr(hidden, "BLOCK_BYTES", 8 * D * 17)
    cut = make().fit(X, Y)
    np.testing.assert_allclose(coefficients(cut), coefficients(whole), rtol=0, atol=2e-3)


def test_blocks_at_a_time_change_nothing(monkeypatch):
    """The parties of a machine with many cores seal several blocks at once."""
    monkeypatch.setattr(hidden, "BLOCK_BYTES", 8 * D * 16)
    models = []
    for cores in (1, 24):
        monkeypatch.setattr("vertikal.side_by_side.cores", lambda cores=cores: cores)
        models.append(make().fit(X, Y))
    one, many = models
    np.testing.assert_allclose(coefficients(many), coefficients(one), rtol=0, atol=2e-3)
    assert many.report_.bytes_sent == one.report_.bytes_sent


@pytest.mark.parametrize("penalty", [1e-6, 1e-2, 4.0, 100.0])
@pytest.mark.parametrize("bits", [8, 20, 28])
def test_bits_that_a_prediction_opens(penalty, bits):
    opened = sealed.opened_bits(bits, penalty)
    assert opened["revealed_bits"] - opened["noise_bits"] <= bits
    # The largest f that can be, with noise, does not wrap.
    largest = 2 / math.sqrt(penalty) * 2**VALUE_BITS + 2 ** opened["noise_bits"] / 2
    assert largest < 2 ** (opened["revealed_bits"] - 1)


def test_coarse_predictions_are_near():
    model = make(disclosure__prediction_bits=12).fit(X, Y)
    fine = make(disclosure__prediction_bits=28).fit(X, Y)
    gap = np.abs(model.decision_function(NEW) - fine.decision_function(NEW))
    # Full scale is 2^(2 + 5): of its 12 bits, noise is below half of 2^-5.
    assert 2**-9 < gap.max() < 2**-6 + 4e-3
