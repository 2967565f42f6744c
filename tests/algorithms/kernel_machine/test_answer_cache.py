"""Products that were opened in a run that was broken off are not opened in the next one."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from tests.conformance.running import run as run_all
from tests.options import grouped
from vertikal import Stochastic, Values
from vertikal.algorithms.kernel_machine.fdskl import train
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.data.tables import Table
from vertikal.errors import MeshError, PassesUsedUp, PeerStopped
from vertikal.mesh import local_meshes
from vertikal.party.clock import Silent
from vertikal.party.party import Labels, Party
from vertikal.secure.hidden.hidden_features import HiddenFeatures
from vertikal.secure.two_party.two_party_features import TwoPartyFeatures

NAMES = ("a", "b", "c", "d")
ROWS, PASSES = 240, 12
GENERATOR = np.random.default_rng(0)
X = {name: GENERATOR.normal(size=(ROWS, 2)) for name in NAMES}
Y = np.where(X["a"][:, :1] * X["b"][:, :1] > 0, 1.0, -1.0)


class Kept:
    """Checkpoints in memory."""

    def __init__(self):
        self.lists = defaultdict(list)

    def saved_blocks(self, name):
        return 0

    def append(self, name, entry, *, durable=False):
        # What is counted must not be lost; an answer may be.
        assert durable == name.startswith("opened")
        self.lists[name].append(entry)

    def entries(self, name):
        return list(self.lists[name])


class Cut(Silent):
    """Ends a party's run after so many iterations."""

    def __init__(self, after):
        self.left = after

    def advance(self, party, stage, amount, note):
        if stage == "solve":
            self.left -= 1
            if self.left < 0:
                raise PeerStopped.of(party, f"{party}: cut off here")


def run(checkpoints, label_parties=("a",), cut=None, names=NAMES, **changes):
    given = {
        "parties": names,
        "label_parties": label_parties,
        "n_components": 48,
        "bandwidth": 2.0,
        "disclosure": Values(bits=64, max_passes=PASSES, value_bits=28, gradient_bits=28),
        "tol": 1e-12,
    }
    settings = FdsklSettings(**grouped(**(given | changes)))

    def one(mesh):
        name = mesh.me
        party = Party(
            mesh,
            Table(name, ("u", "v"), X[name]),
            label_parties=label_parties,
            labels=Labels(Y, np.ones(ROWS)) if name in label_parties else None,
            secret=name.encode() * 32,
            job="job",
            settings_digest="s",
            version="v",
            checkpoints=checkpoints.get(name),
            observer=Cut(cut) if cut is not None and name == "a" else None,
        )
        return train(party, settings)

    return run_all(local_meshes(names, 20), one)


def fresh():
    return {name: Kept() for name in NAMES}


def opened(checkpoints, owner, helper, *, gradients=False):
    """List what the helper has booked: forward products, or gradients (as negative numbers)."""
    entries = checkpoints[helper].lists[f"opened-{owner.encode().hex()}"]
    found = [np.frombuffer(entry, np.int64).tolist() for entry in entries]
    return [entry for entry in found if (entry[0] < 0) == gradients]


@pytest.fixture
def asked(monkeypatch):
    """Every question that a label party asks, by how often."""
    found = Counter()
    for protocol in (HiddenFeatures, TwoPartyFeatures):

        def product(self, kind, vectors, *rest, real=protocol.product):
            found[self.roles.label_party, kind, vectors.tobytes()] += 1
            return real(self, kind, vectors, *rest)

        monkeypatch.setattr(protocol, "product", product)
    return found


@pytest.mark.parametrize("label_parties", [("a",), ("a", "b")])
def test_a_run_goes_on_where_it_was(asked, label_parties):
    helper = "b" if len(label_parties) == 1 else "c"
    checkpoints = fresh()
    outcome = run(checkpoints, label_parties, cut=5)
    assert "cut off here" in str(outcome.errors["a"])
    before = sum(asked.values())
    assert before > 0
    shards = run(checkpoints, label_parties).unwrap()
    assert max(asked.values()) == 1
    for owner in label_parties:
        assert opened(checkpoints, owner, helper) == [[1]] * PASSES
        width = 48 // len(label_parties)
        assert opened(checkpoints, owner, helper, gradients=True) == [[-1, 0, width]] * (PASSES + 1)
        assert shards[owner].training.iterations == PASSES
    # A third run would find all answers, and ask nothing.
    asked.clear()
    again = run(checkpoints, label_parties).unwrap()
    assert not asked
    for owner in label_parties:
        assert (again[owner].coefficients == shards[owner].coefficients).all()


def test_two_parties_go_on_where_they_were(asked):
    changes = {"names": ("a", "b"), "disclosure": Values(max_passes=PASSES, value_bits=14)}
    checkpoints = {name: Kept() for name in ("a", "b")}
    outcome = run(checkpoints, cut=5, **changes)
    assert "cut off here" in str(outcome.errors["a"])
    shards = run(checkpoints, **changes).unwrap()
    assert max(asked.values()) == 1
    assert len(opened(checkpoints, "a", "b")) == shards["a"].training.iterations <= PASSES
    assert len(opened(checkpoints, "a", "b", gradients=True)) == shards["a"].training.iterations + 1
    asked.clear()
    again = run(checkpoints, **changes).unwrap()
    assert not asked
    assert (again["a"].coefficients == shards["a"].coefficients).all()


def test_lost_answers_cost_all_label_parties_as_many_passes():
    checkpoints = fresh()
    run(checkpoints, ("a", "b"), cut=5)
    lost = 2
    del checkpoints["b"].lists["answers"][-2 * lost :]
    shards = run(checkpoints, ("a", "b")).unwrap()
    assert {shards[name].training.iterations for name in ("a", "b")} == {PASSES - lost}
    assert len(opened(checkpoints, "b", "c")) == PASSES
    # The new answers have other noise, after which the first one's later questions are others too.
    assert len(opened(checkpoints, "a", "c")) <= PASSES


def test_nothing_is_left():
    checkpoints = fresh()
    run(checkpoints).unwrap()
    checkpoints["a"].lists.clear()
    outcome = run(checkpoints)
    assert isinstance(outcome.errors["a"], PassesUsedUp)
    assert "have used up the 12 passes that were agreed" in str(outcome.errors["a"])
    assert len(opened(checkpoints, "a", "b")) == PASSES


def test_batches_are_counted_by_row_over_all_runs():
    checkpoints = fresh()
    options = {"solver": Stochastic(batch_size=40, block_size=8, n_steps=6)}
    run(checkpoints, **options).unwrap()
    first = opened(checkpoints, "a", "b")
    assert len(first) == 6
    assert all(len(entry) > 20 for entry in first)
    # Without its answers the label party asks again, and is counted again.
    checkpoints["a"].lists.clear()
    run(checkpoints, **options).unwrap()
    assert opened(checkpoints, "a", "b") == first * 2
    checkpoints["a"].lists.clear()
    outcome = run(checkpoints, **{**options, "disclosure__max_passes": 4})
    assert isinstance(outcome.errors["b"], PassesUsedUp)


def test_a_number_of_passes_that_is_none(monkeypatch):
    checkpoints = fresh()
    real = Party.tell

    def tell(self, to, payload, disclosure):
        real(self, to, payload - 1 if disclosure.name == "passes" else payload, disclosure)

    monkeypatch.setattr(Party, "tell", tell)
    outcome = run(checkpoints)
    assert isinstance(outcome.errors["b"], MeshError)
    assert "b: a sent array([-1]), expected a number of passes" in str(outcome.errors["b"])
