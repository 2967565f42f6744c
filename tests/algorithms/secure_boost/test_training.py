"""SecureBoost is lossless: the trees of pooled columns; and what its messages show."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive.boosting import boost
from vertikal.algorithms.secure_boost.histograms import Bins, best_split
from vertikal.algorithms.secure_boost.training import GRADIENTS, HISTOGRAMS
from vertikal.errors import InputError
from vertikal.estimators import base
from vertikal.estimators.baselines import SecureBoostClassifier
from vertikal.mesh import RecordingMesh, Tape

ROWS = 60
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 4))
X[:, 3] = np.round(X[:, 3])  # ties
Y = (X[:, 2] + 0.5 * X[:, 0] * X[:, 3] > 0).astype(int)
NEW = GENERATOR.normal(size=(30, 4))
PARTIES = {"bank": [0, 1], "shop": [2], "phone": [3]}
SIZES = {"n_trees": 2, "depth": 2, "bins": 6, "learning_rate": 0.4, "min_gain": 0.01}


@pytest.fixture(scope="module")
def fitted():
    tape = Tape()
    original = base.simulate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            base,
            "simulate",
            lambda federation, program: original(
                federation.__class__(
                    **{**vars(federation), "wrap": lambda mesh: RecordingMesh(mesh, tape)}
                ),
                program,
            ),
        )
        model = SecureBoostClassifier(PARTIES, key_bits=512, timeout=60, **SIZES).fit(X, Y)
    return model, tape


def test_the_model_is_that_of_pooled_columns(fitted):
    model, _ = fitted
    settings = {name: value for name, value in SIZES.items() if name != "min_gain"}
    plain = boost(X, Y, penalty=0.1, min_gain=0.01, **settings)
    np.testing.assert_allclose(model.decision_function(X), plain(X), atol=1e-8)
    np.testing.assert_allclose(model.decision_function(NEW), plain(NEW), atol=1e-8)
    assert model.score(X, Y) > 0.8
    # Splits are of several parties, or the federation was not put to the test.
    owners = {node.owner for tree in model.shards_["bank"].trees for node in tree if node.owner}
    assert len(owners) >= 2


def test_gradients_and_histograms_travel_encrypted(fitted):
    model, tape = fitted
    gradients = tape.arrays(f"message/{GRADIENTS.name}", "bank", "shop")
    assert [len(one) for one in gradients] == [ROWS, ROWS, 0]
    # At first all rows of a class have the same gradient; no two ciphertexts are the same.
    assert len({row.tobytes() for row in gradients[0]}) == ROWS
    histograms = tape.arrays(f"message/{HISTOGRAMS.name}", "shop", "bank")
    assert histograms
    assert all(one.shape == (SIZES["bins"], 128) for one in histograms)
    told = {entry.disclosure.name for entry in model.ledger_.entries()}
    assert {GRADIENTS.name, HISTOGRAMS.name} <= told


def test_the_others_keep_their_edges_to_themselves(fitted):
    model, _ = fitted
    bank = model.shards_["bank"]
    assert all(column < 2 for column, _ in bank.splits)
    for name in ("shop", "phone"):
        assert model.shards_[name].trees == []
        used = [n for tree in bank.trees for n in tree if n.owner == name]
        assert len(used) == len(model.shards_[name].splits)


def test_the_best_split_by_hand():
    """Gradients −1, −1, +1 in three bins of one column: the second edge parts them."""
    histogram = np.array([[[-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0]]])
    split = best_split(histogram, 1.0)
    assert (split.column, split.bin) == (0, 1)
    assert split.gain == pytest.approx(0.5 * (4 / 3 + 1 / 2 - 1 / 4))


def test_bins_hold_about_as_many_rows():
    bins = Bins.of(np.arange(12.0)[:, None], 4)
    assert np.bincount(bins.codes[:, 0]).tolist() == [3, 3, 3, 3]
    constant = Bins.of(np.ones((5, 1)), 4)
    assert constant.codes[:, 0].tolist() == [0] * 5


def test_settings_that_cannot_be():
    with pytest.raises(InputError, match="label_parties must be one, which holds the key"):
        SecureBoostClassifier(PARTIES, label_parties=2).fit(X, Y)
    with pytest.raises(InputError, match="key_bits"):
        SecureBoostClassifier(PARTIES, key_bits=256).fit(X, Y)
    with pytest.raises(InputError, match="y must be of two classes"):
        SecureBoostClassifier(PARTIES).fit(X, np.arange(ROWS) % 3)
