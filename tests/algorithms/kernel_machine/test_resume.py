"""Phases that a label party kept in an earlier run are not summed again, and change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.running import run as run_all
from vertikal import Fourier, Landmarks
from vertikal.algorithms.kernel_machine import phases
from vertikal.algorithms.kernel_machine.fdskl import train
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.data.tables import Table
from vertikal.errors import MeshError
from vertikal.mesh import local_meshes
from vertikal.party.party import Labels, Party

NAMES = ("a", "b", "c")
ROWS, HEIGHT = 100, 16
GENERATOR = np.random.default_rng(0)
X = {name: GENERATOR.normal(size=(ROWS, 2)) for name in NAMES}
Y = np.where(X["a"][:, :1] * X["b"][:, :1] > 0, 1.0, -1.0)


class Kept(dict):
    """Checkpoints in memory that forget what comes after ``most`` blocks."""

    def __init__(self, most=10**6):
        super().__init__()
        self.most = most

    def saved_blocks(self, name):
        return len(self)

    def save_block(self, name, number, block):
        if number < self.most:
            self[number] = block.copy()

    def restore_block(self, name, number, into):
        into[...] = self[number]


def run(checkpoints, label_parties=("a",), **changes):
    settings = FdsklSettings(
        **{
            "parties": NAMES,
            "label_parties": label_parties,
            "n_components": 24,
            "bandwidth": 2.0,
            **changes,
        }
    )

    def one(mesh):
        name = mesh.me
        labels = Labels(Y, np.ones(ROWS)) if name in label_parties else None
        party = Party(
            mesh,
            Table(name, ("u", "v"), X[name]),
            label_parties=label_parties,
            labels=labels,
            secret=name.encode() * 32,
            job="job",
            settings_digest="s",
            version="v",
            checkpoints=checkpoints.get(name),
        )
        return train(party, settings), party.ledger

    return run_all(local_meshes(NAMES, 20), one).unwrap()


def phase_bytes(results):
    return sum(
        entry.bytes
        for _, ledger in results.values()
        for entry in ledger.entries()
        if entry.disclosure.name == "phases"
    )


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(phases, "BLOCK_BYTES", HEIGHT * 24)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"feature_map": Landmarks(bits=32)},
        {"feature_map": Fourier(functions="pair", harmonics=(1, 2))},
    ],
)
@pytest.mark.parametrize("blocks", [0, 1, 3, 7])
def test_a_resumed_run_is_bit_identical_and_sends_less(blocks, changes):
    label_parties = ("a",)
    whole = run({}, label_parties, **changes)
    checkpoints = {name: Kept(blocks) for name in NAMES}
    first = run(checkpoints, label_parties, **changes)
    checkpoints["a"].most = 10**6
    second = run(checkpoints, label_parties, **changes)
    for name in label_parties:
        for results in (first, second):
            found = results[name][0].coefficients
            assert found.tobytes() == whole[name][0].coefficients.tobytes()
    if blocks:
        assert phase_bytes(second) < phase_bytes(first)


def test_label_parties_resume_at_the_block_that_all_have():
    label_parties = ("a", "b")
    whole = run({}, label_parties)
    checkpoints = {"a": Kept(4), "b": Kept(2), "c": Kept()}
    run(checkpoints, label_parties)
    assert (len(checkpoints["a"]), len(checkpoints["b"])) == (4, 2)
    second = run(checkpoints, label_parties)
    for name in label_parties:
        assert (second[name][0].coefficients == whole[name][0].coefficients).all()


def test_a_number_of_blocks_that_is_none():
    class Wrong(Kept):
        def saved_blocks(self, name):
            return -1

    with pytest.raises(MeshError, match=r"a sent .*, expected a number of blocks"):
        run({"a": Wrong(), "b": Kept(), "c": Kept()})
