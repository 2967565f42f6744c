"""Hidden levels on every mesh, trained and asked for predictions; the dealer may be the relay."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.meshes import connected, every_mesh, network
from tests.conformance.running import run
from vertikal.algorithms.kernel_machine import fdskl
from vertikal.algorithms.kernel_machine.settings import FdsklSettings, Fourier, Sealed, Values
from vertikal.data.tables import Table
from vertikal.party.party import Labels, Party, digest
from vertikal.secure.keys import prg

ROWS = 80
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 6))
Y = np.where(X[:, 0] + X[:, 4] > 0, 1.0, -1.0)
COLUMNS = {"bank": [0, 1], "shop": [2, 3], "post": [4, 5]}
every_level = pytest.mark.parametrize("disclosure", ["values", "sealed"])


def settings_of(disclosure, parties, functions="cosine"):
    dealer = "notary" if "notary" in parties else None
    return FdsklSettings(
        parties=parties,
        label_parties=("bank",),
        n_components=24,
        feature_map=Fourier(functions=functions),
        bandwidth=2.0,
        alpha=0.01,
        loss="square",
        max_iter=25,
        disclosure=Sealed(dealer=dealer)
        if disclosure == "sealed"
        else Values(bits=64, dealer=dealer, max_passes=100, value_bits=28),
    )


def party_of(mesh, settings, labels):
    columns = COLUMNS.get(mesh.me, [])
    return Party(
        mesh,
        Table(mesh.me, tuple(map(str, columns)), X[:, columns]),
        label_parties=("bank",),
        labels=labels if mesh.me == "bank" else None,
        secret=prg.derive_key(bytes(32), mesh.me),
        job="job",
        settings_digest=digest(settings),
        version="1",
    )


def trained(ends, settings):
    """Predictions of the training rows at the label party, after training on this mesh."""
    labels = Labels(Y[:, None], np.ones(ROWS))
    shards = run(
        ends, lambda mesh: fdskl.train(party_of(mesh, settings, labels), settings)
    ).unwrap()
    found = run(
        ends, lambda mesh: fdskl.predict(party_of(mesh, settings, None), shards[mesh.me])
    ).unwrap()
    assert all((found[name] is None) == (name != "bank") for name in ends)
    return found["bank"][:, 0]


@every_mesh
@every_level
@pytest.mark.parametrize("functions", ["cosine", "pair"])
def test_every_mesh_gives_the_model_of_the_open_level(factory, disclosure, functions):
    names = ("bank", "shop", "post")
    with connected(factory, names) as ends:
        f = trained(ends, settings_of(disclosure, names, functions))
    assert np.mean((f > 0) == (Y > 0)) > 0.9


@every_level
def test_the_dealer_may_be_the_relay(disclosure):
    """It passes on what the two others say to each other, and has no data of its own."""
    names = ("notary", "bank", "shop")
    with connected(network, names) as ends:
        assert ends["bank"].relay == "notary"
        f = trained(ends, settings_of(disclosure, names))
    assert np.mean((f > 0) == (Y > 0)) > 0.7
