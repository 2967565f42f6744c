"""Seeds and closed links: the same at both ends, each once, bound to their use."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tests.conformance.meshes import taped
from tests.conformance.running import run
from tests.conformance.uniformity import check_uniform, check_unrelated
from vertikal.errors import InputError, MeshError, PadReused
from vertikal.secure.hidden.freshness import Fresh
from vertikal.secure.hidden.padded_link import ClosedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.seeds import SeedSequence

KEY = bytes(range(32))
ADA, HAL = PairKeys("ada", "job", {"hal": KEY}), PairKeys("hal", "job", {"ada": KEY})
ROLES = Roles("ada", "hal", "tim", ("ada", "hal", "tim"))


def test_both_ends_grow_the_same_arrays_each_once():
    one, other = SeedSequence(ADA, "hal", "use"), SeedSequence(HAL, "ada", "use")
    first, second = one.take((40, 3), np.uint64), one.take((40, 3), np.uint64)
    assert np.array_equal(first, other.take((40, 3), np.uint64))
    filled = np.empty((40, 3), np.uint64)
    other.fill(filled)
    assert np.array_equal(second, filled)
    assert not np.array_equal(first, second)
    assert one.take((0, 3), np.uint8).shape == (0, 3)


def test_another_purpose_is_another_stream():
    taken = [
        SeedSequence(ADA, "hal", *purpose).take((2048,), np.uint64)
        for purpose in [("a",), ("b",), ("a", "b"), ("ab",)]
    ]
    check_uniform(taken)
    check_unrelated(taken[:2], taken[2:])


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps])
def test_seeds_cannot_be_copied(attempt):
    with pytest.raises(PadReused, match="a sequence of seeds cannot be copied"):
        attempt(SeedSequence(ADA, "hal", "use"))


def test_a_closed_link_is_uniform_to_others_and_plain_to_its_reader():
    sent = [np.zeros((64, 32), np.uint64), np.zeros((64, 32), np.uint64)]

    def work(mesh):
        keys = {"ada": ADA, "hal": HAL}[mesh.me]
        link = ClosedLink(mesh, keys, "hal" if mesh.me == "ada" else "ada", ROLES, "test")
        for values in sent:
            link.send("step", values.copy())
        return [link.recv("step", np.uint64, (64, 32)) for _ in sent]

    with taped(("ada", "hal")) as (ends, tape):
        got = run(ends, work).unwrap()
    for arrays in got.values():
        assert not np.any(arrays)
    frames = {name: tape.arrays("hidden/ada/0/test/step", sender=name) for name in got}
    check_uniform([*frames["ada"], *frames["hal"]])
    # The two directions, and two messages in one, have pads of their own.
    check_unrelated(frames["ada"], frames["hal"])
    check_unrelated(frames["ada"][:1], frames["ada"][1:])


def test_another_shape_is_refused_by_name():
    def work(mesh):
        if mesh.me == "ada":
            link = ClosedLink(mesh, ADA, "hal", ROLES, "shapes")
            link.send("step", np.zeros((2, 3), np.uint8))
            return None
        return ClosedLink(mesh, HAL, "ada", ROLES, "shapes").recv("step", np.uint8, (2, 4))

    with taped(("ada", "hal")) as (ends, _):
        outcome = run(ends, work)
    with pytest.raises(MeshError, match=r"hal: ada sent uint8 \(2, 3\) .*expected uint8 \(2, 4\)"):
        raise outcome.errors["hal"]


def test_a_correlation_is_taken_once():
    fresh = Fresh("hal", "tim")
    values = SeedSequence(ADA, "hal", "use").take((100,), np.uint32)
    assert fresh.check(values) is values
    fresh.check(values + np.uint32(1))
    with pytest.raises(PadReused, match="hal: the dealer tim sent the same correlation twice"):
        fresh.check(values.copy())


def test_arrays_too_short_to_tell_may_be_equal():
    fresh = Fresh("hal", "tim")
    for _ in range(3):
        fresh.check(np.zeros(1, np.uint64))


@pytest.mark.parametrize(
    ("helper", "dealer", "said"),
    [
        ("zoe", "tim", r"helper must be one of the parties \['ada', 'hal', 'tim'\], got 'zoe'"),
        ("hal", "zoe", "dealer must be one of the parties"),
        ("hal", "hal", "two different parties other than the label party 'ada', got 'hal' and"),
        ("ada", "tim", "two different parties other than the label party 'ada'"),
    ],
)
def test_roles_are_three_different_parties(helper, dealer, said):
    with pytest.raises(InputError, match=said):
        Roles("ada", helper, dealer, ("ada", "hal", "tim"))


def test_a_session_has_seeds_of_its_own():
    again = Roles("ada", "hal", "tim", ROLES.parties, "1")
    assert again.names == ROLES.names
    assert again.purpose != ROLES.purpose
