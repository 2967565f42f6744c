"""The booked mesh: nothing is sent without an entry, and an entry ends with its block."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.meshes import taped
from vertikal.errors import PeerStopped, SecrecyError
from vertikal.mesh import local_meshes
from vertikal.party.booking import BookedMesh
from vertikal.privacy.ledger import Disclosure, Ledger

TOTAL = Disclosure("total", "a total", "the total", masked=True)
NEWS = Disclosure("news", "some news", "the news", masked=False)


@pytest.fixture
def booked():
    """The booked mesh of a, and the tape of all that left it."""
    with taped(("a", "b")) as (ends, tape):
        ledger = Ledger()
        yield BookedMesh(ends["a"], ledger), ledger, tape


def refused(mesh, tag="smuggled"):
    with pytest.raises(SecrecyError, match=f"a: '{tag}' has no entry in the ledger; not sent"):
        mesh.send("b", tag, np.zeros(3))
    return True


def test_nothing_leaves_without_an_entry(booked):
    mesh, ledger, tape = booked
    assert refused(mesh)
    with mesh.under(NEWS):
        mesh.send("b", "x", {"x": 1})
    assert refused(mesh, "later")
    assert [frame.header.tag for frame in tape] == ["x"]
    assert ledger.disclosures() == [NEWS]


def test_frames_are_booked_under_the_innermost_entry(booked):
    mesh, ledger, tape = booked
    with mesh.under(TOTAL):
        with mesh.under(NEWS):
            mesh.send("b", "x", {"x": 1})
        mesh.send("b", "y", np.zeros(3))
    sizes = {frame.header.tag: frame.size for frame in tape}
    assert {entry.disclosure: entry.bytes for entry in ledger.entries()} == {
        NEWS: sizes["x"],
        TOTAL: sizes["y"],
    }


def test_an_entry_ends_with_its_block_even_by_an_error(booked):
    mesh, _, _ = booked
    with pytest.raises(ValueError, match="inside"), mesh.under(TOTAL):
        raise ValueError("inside")
    assert refused(mesh)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (lambda mesh: mesh.close(), "a has ended without sending 'x'"),
        (lambda mesh: mesh.fail("why"), r"a stopped \(why\)"),
    ],
)
def test_closing_and_failing_are_passed_on(end, said):
    ends = local_meshes("ab")
    end(BookedMesh(ends["a"], Ledger()))
    with pytest.raises(PeerStopped, match=said):
        ends["b"].recv("a", "x", 5.0)
