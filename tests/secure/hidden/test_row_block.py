"""Blocks of rows are hidden apart: in any order, several at a time, and each only once."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from tests.conformance.running import run
from tests.secure.hidden.hidden_run import NAMES, ROLES, cosines, draw_phases, hide
from tests.secure.sealed.sealed_run import seal, split
from tests.secure.test_dealing_ahead import prepare
from tests.secure.two_party.two_party_run import hide_between_two
from vertikal.errors import PadReused
from vertikal.mesh import local_meshes
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.hidden_features import HiddenBlock, HiddenFeatures
from vertikal.secure.hidden.openings import Limits
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.sealed.sealed_features import MATRIX_BITS, SealedBlock, SealedFeatures

ROWS, WIDTH = 200, 8  # four blocks
PHASES = draw_phases(ROWS, WIDTH)
FEATURES = cosines(PHASES)
some_together = pytest.mark.parametrize(
    "together", [(), ("hal",), ("ada", "tim"), ("sue",), NAMES], ids=str
)


@some_together
@pytest.mark.parametrize("bits", [32, 64])
def test_hidden_blocks_in_whatever_order(together, bits):
    vectors = np.random.default_rng(0).normal(size=(WIDTH, 2))
    session = hide(
        PHASES, lambda part: part.product("forward", vectors), bits=bits, together=together
    )
    np.testing.assert_allclose(session.result, FEATURES @ vectors, rtol=0, atol=0.1)
    assert all(part.at_a_time for part in session.parts.values())


@some_together
def test_sealed_blocks_in_whatever_order(together):
    vector = np.arange(WIDTH)[:, None] << 10

    def program(part):
        return part.forward(split(vector, part))

    session = seal(PHASES, program, forward=1, together=together)
    found = session.total() * 2.0**-MATRIX_BITS
    np.testing.assert_allclose(found, FEATURES @ vector, rtol=0, atol=0.01 * vector.sum())
    assert all(part.at_a_time for part in session.parts.values())


def test_a_dealer_that_prepared_its_numbers_passes_them_on_in_order():
    phases = draw_phases(40, WIDTH) | {"tim": np.zeros((40, WIDTH), np.uint8)}
    agreed = {"forward": 10, "adjoint": 1, "factors": 1}
    session = seal(phases, lambda part: None, prepared={"tim": prepare()}, **agreed)
    session.outcome.unwrap()
    assert {name: part.at_a_time for name, part in session.parts.items()} == {
        "ada": True,
        "hal": True,
        "sue": True,
        "tim": False,
    }


def test_two_parties_hide_one_block_after_the_other():
    phases = draw_phases(40, WIDTH, names=("ada", "bob"))
    session = hide_between_two(phases, lambda part: None)
    session.outcome.unwrap()
    assert not any(part.at_a_time for part in session.parts.values())


@pytest.mark.parametrize("sealed", [False, True], ids=["hidden", "sealed"])
def test_no_party_hides_the_same_rows_twice(sealed):
    """Their pads would come again: of a second time nothing is sent."""

    def work(mesh):
        keys = agree(mesh, prg.fresh_key(), job="job", version="1", settings_digest="s", rows=64)
        dealing = Dealing(mesh, keys, ROLES) if mesh.me in ROLES.names else None
        shared = mesh, keys, ROLES, dealing
        if sealed:
            part = SealedFeatures(*shared, SealedBlock(64, WIDTH, 8, 1), lambda _: nullcontext())
        else:
            agreed = HiddenBlock(64, WIDTH, 8, 64, Limits(1, 0, 1))
            part = HiddenFeatures(*shared, agreed, lambda _: nullcontext())
        rows = slice(0, 64)
        part.add(rows, PHASES[mesh.me][rows].copy())
        sent = mesh.traffic.bytes_sent
        with pytest.raises(PadReused, match=f"{mesh.me}: the key with .* is in use already"):
            part.add(rows, PHASES[mesh.me][rows].copy())
        assert mesh.traffic.bytes_sent == sent
        return mesh.me

    assert sorted(run(local_meshes(NAMES, 20.0), work).unwrap()) == sorted(NAMES)
