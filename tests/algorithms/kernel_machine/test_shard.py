"""A shard holds one party's part of the model and nothing of another's."""

from __future__ import annotations

import pickle
from dataclasses import fields

import msgspec
import numpy as np
import pytest

from vertikal import FDSKLClassifier, Stochastic
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.records import convert

X = np.random.default_rng(0).normal(size=(50, 6))
Y = (X[:, 0] > 0).astype(int)


def fit(**settings):
    return FDSKLClassifier(parties=3, random_state=0, **settings).fit(X, Y)


def test_shards_come_in_the_order_of_the_parties():
    for _ in range(5):
        assert list(fit(n_components=16).shards_) == ["party1", "party2", "party3"]


def test_only_label_parties_have_coefficients_and_only_their_own():
    model = fit(n_components=21, label_parties=["party2", "party3"])
    assert model.shards_["party1"].coefficients is None
    assert model.shards_["party2"].coefficients.shape == (11, 1)
    assert model.shards_["party3"].coefficients.shape == (10, 1)
    names = {field.name for field in fields(model.shards_["party2"])}
    assert not {"directions", "omega", "offsets", "targets", "weights"} & names


def test_a_feature_partys_shard_does_not_grow_with_the_directions():
    sizes = {
        len(pickle.dumps(fit(n_components=total, solver=Stochastic(n_steps=1)).shards_["party2"]))
        for total in (256, 1024)
    }
    assert max(sizes) - min(sizes) <= 2
    assert max(sizes) < 2000


@pytest.mark.parametrize("label_parties", [1, 2])
def test_no_shard_knows_anothers_seed(label_parties):
    model = fit(n_components=16, label_parties=label_parties)
    seeds = {name: shard.seed for name, shard in model.shards_.items()}
    assert len(set(seeds.values())) == 3
    for name, shard in model.shards_.items():
        raw = pickle.dumps(shard)
        for owner, seed in seeds.items():
            assert len(seed) == 32
            assert (seed in raw) == (owner == name)


def test_a_shard_does_not_show_its_seed():
    shard = fit(n_components=16).shards_["party1"]
    assert "seed=b" not in repr(shard)
    assert repr(shard.seed) not in repr(shard)


def test_each_shard_names_its_own_columns():
    model = FDSKLClassifier(
        parties={"bank": [5, 0], "shop": [2]}, n_components=16, random_state=0, scale="standard"
    ).fit(X, Y)
    assert model.shards_["bank"].columns == ("5", "0")
    assert model.shards_["shop"].columns == ("2",)
    np.testing.assert_allclose(
        model.shards_["bank"].scaling.centre, X[:, [5, 0]].mean(axis=0), atol=1e-12
    )
    assert len(model.shards_["shop"].scaling.factor) == 1


def test_a_shard_from_before_there_were_encodings_has_none():
    shard = fit(n_components=16).shards_["party2"]
    content = msgspec.to_builtins(shard, enc_hook=lambda value: {"array": value.tolist()})
    assert content.pop("encoding") is None
    old = convert(content, Shard, dec_hook=lambda _, value: np.array(value["array"]))
    assert old.encoding is None
    assert (old.columns, old.width, old.seed) == (shard.columns, 2, shard.seed)
