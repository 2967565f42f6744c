"""Runs of the tuned kernel machine in threads, with secrets that tests can name."""

from __future__ import annotations

import numpy as np

from tests.conformance.running import run
from vertikal.algorithms.tuned.settings import KernelSettings
from vertikal.algorithms.tuned.training import predict, train
from vertikal.data.tables import Table
from vertikal.mesh import local_meshes
from vertikal.party.party import Labels, Party, digest
from vertikal.secure.keys.prg import derive_key

NAMES = ("bank", "shop", "post")
SECRETS = {name: derive_key(bytes(32), name) for name in NAMES}


def columns_of(rows, seed=0):
    """Tables of three parties: two columns of each matter not at all."""
    generator = np.random.default_rng(seed)
    return {name: generator.normal(size=(rows, 4)) for name in NAMES}


def classes_of(tables, seed=1):
    noise = np.random.default_rng(seed).normal(size=len(tables["bank"]))
    score = tables["bank"][:, 0] * tables["shop"][:, 1] + np.sin(2 * tables["post"][:, 2])
    return np.where(score + 0.3 * noise > 0.1, 1.0, -1.0)


def settings_of(**changes):
    return KernelSettings(**({"parties": NAMES, "label_parties": ("bank",), "seed": 3} | changes))


def party_of(mesh, tables, settings, labels=None, checkpoints=None):
    values = tables.get(mesh.me, np.empty((len(tables["bank"]), 0)))
    return Party(
        mesh,
        Table(mesh.me, tuple(f"{mesh.me}{j}" for j in range(values.shape[1])), values),
        label_parties=settings.label_parties,
        labels=labels if mesh.me in settings.label_parties else None,
        secret=SECRETS.get(mesh.me, bytes(32)),
        job="job",
        settings_digest=digest(settings),
        version="1",
        checkpoints=None if checkpoints is None else checkpoints[mesh.me],
    )


def trained(tables, targets, settings, *, weights=None, meshes=None, checkpoints=None):
    """(shards, ledgers) by party."""
    targets = targets if targets.ndim > 1 else targets[:, None]
    labels = Labels(targets, np.ones(len(targets)) if weights is None else weights)

    def one(mesh):
        party = party_of(mesh, tables, settings, labels, checkpoints)
        return train(party, settings), party.ledger

    ended = run(meshes or local_meshes(settings.parties, 60), one).unwrap()
    return (
        {name: shard for name, (shard, _) in ended.items()},
        {name: ledger for name, (_, ledger) in ended.items()},
    )


def predicted(tables, shards, settings, meshes=None):
    ended = run(
        meshes or local_meshes(settings.parties, 60),
        lambda mesh: predict(party_of(mesh, tables, settings), shards[mesh.me]),
    ).unwrap()
    return ended[settings.label_parties[0]]
