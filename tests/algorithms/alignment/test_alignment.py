"""Alignment as a program: one order at all parties, every message booked, bad ids stopped first."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.meshes import taped
from tests.conformance.networks import network
from tests.conformance.running import run
from vertikal.algorithms.alignment.alignment import DISCLOSURES, align
from vertikal.data.ids import normalise
from vertikal.data.tables import Table
from vertikal.errors import InputError, SecrecyError
from vertikal.mesh import local_meshes
from vertikal.party.party import Party
from vertikal.secure.keys import prg
from vertikal.secure.psi.intersection import STEPS

TABLES = {
    "bank": [f"k{number}" for number in range(50, 0, -1)],
    "shop": [f"k{number}" for number in range(30, 90)],
    "clinic": [f"k{number}" for number in range(20, 45)],
}


def party_on(mesh, leader="bank"):
    return Party(
        mesh,
        Table(mesh.me, (), np.empty((0, 0))),
        label_parties=(leader,),
        labels=None,
        secret=prg.fresh_key(),
        job="job",
        settings_digest="settings",
        version="1",
    )


def aligned(tables=TABLES, leader="bank", **options):
    parties = {}

    def work(mesh):
        parties[mesh.me] = party_on(mesh, leader)
        return align(parties[mesh.me], tables[mesh.me], **options)

    with taped(tuple(tables), deadline=30.0) as (ends, tape):
        outcome = run(ends, work)
    return outcome, parties, tape


def common_of(results, tables=TABLES):
    return [[tables[name][row] for row in found.rows] for name, found in results.items()]


@pytest.mark.parametrize("leader", TABLES)
def test_rows_stand_for_the_same_people_at_all_parties(leader):
    outcome, _, _ = aligned(leader=leader)
    results = outcome.unwrap()
    first, *others = common_of(results)
    assert others == [first, first]
    assert sorted(first) == sorted(f"k{number}" for number in range(30, 45))
    for name, found in results.items():
        assert (found.matched, found.own) == (15, len(TABLES[name]))
        assert found.rows.dtype == np.int64
    assert len({found.digest for found in results.values()}) == 1


def test_everything_is_booked_under_a_name():
    _, parties, _ = aligned()
    booked = {d.name for party in parties.values() for d in party.ledger.disclosures()}
    assert booked == {"agreement", *(d.name for d in DISCLOSURES.values())}
    assert set(DISCLOSURES) == set(STEPS)
    stages = set(parties["shop"].clock.stages)
    assert stages == {"agreement", "alignment: sizes", "alignment: ids", "alignment: tables"}


def test_a_party_can_align_twice():
    def work(mesh):
        party = party_on(mesh)
        ids = normalise(mesh.me, TABLES[mesh.me])
        return [align(party, ids) for _ in range(2)]

    with taped(tuple(TABLES), deadline=30.0) as (ends, _):
        results = run(ends, work).unwrap()
    for first, second in results.values():
        assert sorted(first.rows) == sorted(second.rows)
        assert first.digest != second.digest


def test_parties_without_ids_stay_out():
    """A dealer without columns is in the mesh, and not in the group."""
    group = ("shop", "bank", "clinic")

    def work(mesh):
        party = party_on(mesh)
        return align(party, TABLES[mesh.me], group=group) if mesh.me in group else None

    results = run(local_meshes([*TABLES, "dealer"], 30.0), work).unwrap()
    assert results.pop("dealer") is None
    assert len({tuple(common) for common in common_of(results)}) == 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["k1", "k2", "k2", "k1", "k1"], "ids of shop: of 5, 3 rows repeat the id of an earlier"),
        (["k1", None, ""], "2 are missing or empty"),
        (["k1", 2], "1 are a text and 1 are a whole number"),
        ([1.5, 2.5], "2 are of type float"),
        ([], "of 0, there are none"),
    ],
)
def test_bad_ids_are_counted_before_anything_is_sent(bad, said):
    outcome, _, tape = aligned({**TABLES, "shop": bad})
    assert said in str(outcome.errors["shop"])
    assert {frame.header.sender for frame in tape if frame.header.tag != "agreement"} <= {
        *("bank", "clinic")
    }
    assert not any("k1" in str(error) for error in outcome.errors.values())


def test_nothing_in_common():
    outcome, _, _ = aligned({"bank": ["1", "2"], "shop": ["01", "02"]})
    with pytest.raises(SecrecyError, match=r"0 ids are common to bank, shop, .* how the ids are"):
        outcome.unwrap()


@pytest.mark.parametrize("least", [0, True, 2.5])
def test_a_least_number_that_is_none(least):
    with pytest.raises(InputError, match="least must be a whole number from 1 on"):
        aligned(least=least)[0].unwrap()


def test_over_mutual_tls():
    ends, cleanup = network(tuple(TABLES), 30.0)
    try:
        results = run(ends, lambda mesh: align(party_on(mesh), TABLES[mesh.me])).unwrap()
    finally:
        cleanup()
    first, *others = common_of(results)
    assert others == [first, first]
    assert len(first) == 15
