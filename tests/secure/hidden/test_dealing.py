"""The dealer's keys, and what is grown from them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.running import run
from tests.secure.hidden.hidden_run import NAMES, ROLES
from vertikal.errors import PadReused
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.secure.hidden.dealing import Dealing, RepetitionCheck, draw_keys
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree


def at_roles(work):
    tape = Tape()

    def agreed(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=1)
        return work(mesh, keys) if mesh.me in ROLES.names else None

    ends = local_meshes(NAMES, 20.0)
    outcome = run({name: RecordingMesh(end, tape) for name, end in ends.items()}, agreed)
    return outcome, tape


def test_each_role_grows_the_same_as_the_dealer_and_no_other():
    def work(mesh, keys):
        dealing = Dealing(mesh, keys, ROLES)
        peers = ("ada", "hal") if mesh.me == "tim" else (None,)
        return [dealing.seeds("x", peer).take((50,), np.uint64) for peer in peers]

    outcome, tape = at_roles(work)
    got = outcome.unwrap()
    assert np.array_equal(got["tim"][0], got["ada"][0])
    assert np.array_equal(got["tim"][1], got["hal"][0])
    assert not (got["ada"][0] == got["hal"][0]).any()
    # The keys travel under pads: what is on the wire is not what is grown from.
    assert len(tape.arrays("hidden/ada/0/dealt/key")) == 2


def test_keys_are_fresh():
    drawn = [draw_keys(ROLES) for _ in range(3)]
    keys = [key for pair in drawn for key in pair.values()]
    assert len(set(keys)) == 6
    assert all(len(key) == 32 for key in keys)


def test_numbers_that_come_twice_are_refused():
    def work(mesh, keys):
        dealing = Dealing(mesh, keys, ROLES)
        if mesh.me == "tim":
            for _ in range(2):
                dealing.send("numbers", np.arange(10, dtype=np.uint64))
        if mesh.me == "hal":
            first = dealing.recv("numbers", np.uint64, (10,))
            with pytest.raises(PadReused, match="hal: the dealer tim sent the same correlation"):
                dealing.recv("numbers", np.uint64, (10,))
            return first.tolist()
        return None

    outcome, _ = at_roles(work)
    assert outcome.unwrap()["hal"] == list(range(10))


def test_a_correlation_is_taken_once():
    repetition = RepetitionCheck("hal", "tim")
    values = np.arange(100, dtype=np.uint32)
    assert repetition.check(values) is values
    repetition.check(values + np.uint32(1))
    with pytest.raises(PadReused, match="hal: the dealer tim sent the same correlation twice"):
        repetition.check(values.copy())


def test_arrays_too_short_to_tell_may_be_equal():
    repetition = RepetitionCheck("hal", "tim")
    for _ in range(3):
        repetition.check(np.zeros(1, np.uint64))
