"""A padded link: plain to its reader, uniform to everybody else."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.meshes import taped
from tests.conformance.running import run
from tests.conformance.uniformity import check_uniform, check_unrelated
from vertikal.errors import MeshError
from vertikal.secure.hidden.padded_link import PaddedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys

KEY = bytes(range(32))
ADA, HAL = PairKeys("ada", "job", {"hal": KEY}), PairKeys("hal", "job", {"ada": KEY})
ROLES = Roles("ada", "hal", "tim", ("ada", "hal", "tim"))


def test_a_padded_link_is_uniform_to_others_and_plain_to_its_reader():
    sent = [np.zeros((64, 32), np.uint64), np.zeros((64, 32), np.uint64)]

    def work(mesh):
        keys = {"ada": ADA, "hal": HAL}[mesh.me]
        link = PaddedLink(mesh, keys, "hal" if mesh.me == "ada" else "ada", ROLES, "test")
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
            link = PaddedLink(mesh, ADA, "hal", ROLES, "shapes")
            link.send("step", np.zeros((2, 3), np.uint8))
            return None
        return PaddedLink(mesh, HAL, "ada", ROLES, "shapes").recv("step", np.uint8, (2, 4))

    with taped(("ada", "hal")) as (ends, _):
        outcome = run(ends, work)
    with pytest.raises(MeshError, match=r"hal: ada sent uint8 \(2, 3\) .*expected uint8 \(2, 4\)"):
        raise outcome.errors["hal"]
