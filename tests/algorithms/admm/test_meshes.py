"""ADMM sharing gives the same model and the same predictions on every mesh, bit for bit."""

from __future__ import annotations

import numpy as np

from tests.conformance.meshes import connected, every_mesh
from tests.conformance.meshes import local as reference
from tests.conformance.running import run
from vertikal.algorithms.admm import sharing as admm
from vertikal.algorithms.admm.settings import AdmmSettings, Privacy
from vertikal.data.tables import Table
from vertikal.party.party import Labels, Party, digest

GENERATOR = np.random.default_rng(4)
ROWS = 40
BLOCKS = {name: GENERATOR.normal(size=(ROWS, 3)) for name in ("bank", "shop", "clinic")}
SIGNS = np.where(BLOCKS["bank"][:, 0] - BLOCKS["shop"][:, 1] > 0, 1.0, -1.0)[:, None]


def train_and_predict(factory, settings):
    def program(mesh):
        party = Party(
            mesh,
            Table(mesh.me, ("u", "v", "w"), BLOCKS[mesh.me]),
            label_parties=settings.label_parties,
            labels=Labels(SIGNS, np.ones(ROWS)) if mesh.me == "bank" else None,
            secret=mesh.me.encode().ljust(32),
            job="job",
            settings_digest=digest(settings),
            version="0",
        )
        shard = admm.train(party, settings)
        return shard, admm.predict(party, shard)

    with connected(factory, tuple(BLOCKS)) as ends:
        return run(ends, program).unwrap()


def settings_of(**changes):
    return AdmmSettings(parties=tuple(BLOCKS), label_parties=("bank",), max_iter=4, **changes)


@every_mesh
def test_the_model_is_the_same(factory):
    found, expected = (train_and_predict(one, settings_of()) for one in (factory, reference))
    for name in BLOCKS:
        np.testing.assert_array_equal(found[name][0].coefficients, expected[name][0].coefficients)
    np.testing.assert_array_equal(found["bank"][1], expected["bank"][1])
    assert found["shop"][1] is None
    assert [one.objective for one in found["bank"][0].rounds] == [
        one.objective for one in expected["bank"][0].rounds
    ]


@every_mesh
def test_privacy_is_accounted_for_the_same(factory):
    privacy = Privacy(epsilon=20.0, delta=1e-3)
    found = train_and_predict(factory, settings_of(privacy=privacy))
    for name in BLOCKS:
        assert len(found[name][0].spent) == 4
        assert 19.9 < found[name][0].spent[-1].epsilon <= 20.0 + 1e-6
