"""The party: every message booked, sums and broadcasts among groups, and what it refuses."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np
import pytest

from tests.conformance.meshes import taped
from tests.conformance.running import run
from vertikal.data.tables import Table
from vertikal.errors import (
    AgreementError,
    DeadlineExceeded,
    InputError,
    PeerStopped,
    RingError,
    SecrecyError,
)
from vertikal.mesh import local_meshes
from vertikal.party.party import AGREEMENT, Labels, Party, digest
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring
from vertikal.secure.keys import prg

TOTAL = Disclosure("total", "a total", "the total", masked=True)
NEWS = Disclosure("news", "some news", "the news", masked=False)
NAMES = ("bank", "alma", "shop", "clinic")

every_count = pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2], NAMES], ids=len)


def make_party(mesh, **changes):
    arguments = {
        "label_parties": mesh.parties[:1],
        "labels": None,
        "secret": hashlib.sha256(mesh.me.encode()).digest(),
        "job": "job",
        "settings_digest": "digest",
        "version": "1",
        **changes,
    }
    return Party(mesh, Table(mesh.me, ("x",), np.zeros((3, 1))), **arguments)


def at_all(names, program, **changes):
    """Run ``program`` at a party of each name; results, parties and tape."""
    parties = {}

    def work(mesh):
        parties[mesh.me] = make_party(mesh, **changes)
        return program(parties[mesh.me])

    with taped(names, deadline=60.0) as (ends, tape):
        results = run(ends, work).unwrap()
    return results, parties, tape


def test_who_is_who():
    def program(party):
        return (
            party.name,
            party.parties,
            party.leader,
            party.leads,
            party.has_labels,
            party.label_parties,
            party.table.party,
        )

    got, _, _ = at_all(NAMES[:3], program, label_parties=("alma", "shop"))
    for name, told in got.items():
        leads, labels = name == "alma", name in ("alma", "shop")
        assert told == (name, NAMES[:3], "alma", leads, labels, ("alma", "shop"), name)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"masking": "hope"}, r"masking must be one of \('pads', 'trees'\), got 'hope'"),
        ({"shape": "blob"}, r"shape must be one of \['tree', 'star', 'cycle'\], got 'blob'"),
        ({"label_parties": ()}, r"label_parties must be one or more of the parties \['bank'"),
        ({"label_parties": ("bank", "zoo")}, r"label_parties .*'zoo'"),
    ],
)
def test_what_is_refused_before_anything_is_sent(changes, said):
    with taped(NAMES[:2]) as (ends, tape), pytest.raises(InputError, match=said):
        make_party(ends["bank"], **changes)
    assert not len(tape)


def test_labels_are_kept_as_given():
    labels = Labels(np.ones((3, 1)), np.ones(3))
    party = make_party(local_meshes(["bank"])["bank"], labels=labels)
    assert party.labels is labels


def test_parties_of_different_jobs_do_not_start():
    with taped(NAMES[:2]) as (ends, _):
        outcome = run(ends, lambda mesh: make_party(mesh, settings_digest=f"settings of {mesh.me}"))
    assert any(isinstance(error, AgreementError) for error in outcome.errors.values())
    assert set(outcome.errors) == set(NAMES[:2])


def test_the_agreement_is_booked_with_the_rest():
    def program(party):
        party.broadcast({"x": 1}, party.parties, NEWS)

    _, parties, tape = at_all(NAMES[:2], program)
    assert {frame.header.tag.split("/")[0] for frame in tape} == {"agreement", "broadcast"}
    assert parties["bank"].ledger.disclosures() == [AGREEMENT, NEWS]


@pytest.mark.parametrize(
    ("names", "masking"),
    [(NAMES[:1], "pads"), (NAMES[:2], "pads"), (NAMES, "pads"), (NAMES, "trees")],
)
def test_the_ledger_books_every_byte_of_the_mesh(names, masking):
    def program(party):
        party.secure_sum(np.ones(5, np.uint16), names[-1], TOTAL)
        party.broadcast({"x": 1}, names, NEWS)
        return party.bytes_sent

    sent, parties, tape = at_all(names, program, masking=masking)
    for name, party in parties.items():
        frames = [frame for frame in tape if frame.header.sender == name]
        assert party.ledger.bytes == sent[name] == sum(frame.size for frame in frames)
        entries = party.ledger.entries()
        booked = {(entry.receiver, entry.disclosure.name): entry for entry in entries}
        assert len(booked) == len(entries)
        for (receiver, what), entry in booked.items():
            tag = {"total": "sum/total/", "news": "broadcast/news/", "agreement": "agreement"}[what]
            matching = [
                frame
                for frame in frames
                if frame.header.receiver == receiver and frame.header.tag.startswith(tag)
            ]
            assert entry.sender == name
            assert (entry.frames, entry.bytes) == (len(matching), sum(f.size for f in matching))
        assert sum(entry.frames for entry in booked.values()) == len(frames)
        assert party.clock.stages["agreement"].bytes_sent == sum(
            entry.bytes for (_, what), entry in booked.items() if what == "agreement"
        )


@every_count
@pytest.mark.parametrize("shape", ["star", "tree", "cycle"])
def test_a_secure_sum_reaches_its_receiver_only(names, shape):
    def program(party):
        mine = np.array([names.index(party.name) + 1, 250], np.uint8)
        return [party.secure_sum(mine.copy(), to, TOTAL) for to in names]

    got, _, _ = at_all(names, program, shape=shape)
    expected = [sum(range(1, len(names) + 1)), 250 * len(names) % 256]
    for name, sums in got.items():
        told = dict(zip(names, sums, strict=True))
        assert told.pop(name).tolist() == expected
        assert set(told.values()) <= {None}


def test_a_secure_sum_among_some():
    group = ("clinic", "bank", "shop")

    def program(party):
        if party.name not in group:
            return "elsewhere"
        alone = party.secure_sum(np.array([9], np.uint8), party.name, TOTAL, (party.name,))
        total = party.secure_sum(np.array([7], np.uint8), "bank", TOTAL, group)
        pair = None
        if party.name in group[:2]:
            pair = party.secure_sum(np.array([1], np.uint8), "bank", TOTAL, group[:2])
        return alone.tolist(), total, pair

    got, _, tape = at_all(NAMES, program)
    assert got["alma"] == "elsewhere"
    alone, total, pair = got["bank"]
    assert (alone, total.tolist(), pair.tolist()) == ([9], [21], [2])
    assert got["clinic"] == got["shop"] == ([9], None, None)
    summing = [frame.header for frame in tape if frame.header.tag.startswith("sum/")]
    assert len(summing) == 3
    assert not any("alma" in (header.sender, header.receiver) for header in summing)


def test_a_secure_sum_over_trees_among_some():
    group = ("clinic", "bank", "shop")

    def program(party):
        if party.name in group:
            return party.secure_sum(np.array([7], np.uint8), "bank", TOTAL, group)
        return None

    got, _, tape = at_all(NAMES, program, masking="trees")
    assert got.pop("bank").tolist() == [21]
    assert set(got.values()) == {None}
    assert any(frame.header.tag.endswith("/t2") for frame in tape)


def test_two_parties_are_told_that_trees_need_three():
    def program(party):
        with pytest.raises(SecrecyError, match="masking='pads', or at least three parties"):
            party.secure_sum(np.ones(2, np.uint8), "bank", TOTAL)
        return party.ledger.disclosures()

    got, _, _ = at_all(NAMES[:2], program, masking="trees")
    assert got == {"bank": [AGREEMENT], "alma": [AGREEMENT]}


def phases_of(name, names, rows=4, width=6):
    draw = np.random.default_rng(names.index(name))
    projections = draw.integers(0, 256, (rows, width), np.uint8)
    return projections, draw.integers(0, 256, width, np.uint8)


@every_count
def test_a_phase_sum_with_pads_keeps_all_offsets(names):
    def program(party):
        projections, offsets = phases_of(party.name, names)
        return party.phase_sum(projections + offsets, offsets, names[-1], TOTAL)

    got, _, _ = at_all(names, program)
    parts = [np.add(*phases_of(name, names)) for name in names]
    assert np.array_equal(got.pop(names[-1]), np.add.reduce(parts, dtype=np.uint8))
    assert set(got.values()) <= {None}


@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2], NAMES[:3], NAMES], ids=len)
def test_a_phase_sum_over_trees_keeps_one_offset(names):
    """FDSKL Algorithm 3, line 6: another party's than the receiver's, the same for all rows."""

    def program(party):
        projections, offsets = phases_of(party.name, names)
        return [party.phase_sum(projections + offsets, offsets, names[0], TOTAL) for _ in range(2)]

    got, _, _ = at_all(names, program, masking="trees")
    first, second = got.pop(names[0])
    assert np.array_equal(first, second)
    total = np.add.reduce([phases_of(name, names)[0] for name in names], dtype=np.uint8)
    # A party alone has nobody to hide from: its own offset stays.
    candidates = names[1:] or names
    remaining = first - total
    assert any(
        np.array_equal(remaining, np.broadcast_to(phases_of(name, names)[1], remaining.shape))
        for name in candidates
    )
    assert all(sums == [None, None] for sums in got.values())


@pytest.mark.parametrize("group", [NAMES[:1], NAMES[:2], NAMES[1:], NAMES, NAMES[::-1]])
def test_a_sum_to_a_group_reaches_all_of_it(group):
    def program(party):
        if party.name not in group:
            return None
        return party.sum_to_group(np.array([[3, 200]], np.uint8), group, TOTAL).tolist()

    got, _, _ = at_all(NAMES, program)
    expected = [[3 * len(group), 200 * len(group) % 256]]
    assert got == {name: expected if name in group else None for name in NAMES}


def test_each_member_may_do_with_the_sum_what_it_likes():
    """One party that writes into its result must not change another's."""

    def program(party):
        total = party.sum_to_group(np.array([1, 2], np.uint8), NAMES[:3], TOTAL)
        if total.flags.writeable:
            total += np.uint8(100)
        party.broadcast({"done": 1}, (NAMES[0], *NAMES[1:3]), NEWS)
        return total

    got, _, _ = at_all(NAMES[:3], program)
    for total in got.values():
        assert total.tolist() in ([3, 6], [103, 106])
    assert not any(
        np.shares_memory(got[one], got[other]) and got[one].flags.writeable
        for one in got
        for other in got
        if one != other
    )


@every_count
@pytest.mark.parametrize(
    "payload", [np.arange(6).reshape(2, 3), {"go": [1, 2]}], ids=["array", "map"]
)
def test_a_broadcast_reaches_its_group(names, payload):
    group = names[::-1]

    def program(party):
        first = party.broadcast(payload if party.name == group[0] else None, group, NEWS)
        second = party.broadcast({"n": 2} if party.name == group[0] else None, group, NEWS)
        return first, second

    got, _, _ = at_all(names, program)
    assert set(got) == set(names)
    for first, second in got.values():
        np.testing.assert_equal(first, payload)
        assert second == {"n": 2}


def test_broadcasts_in_one_group_do_not_disturb_those_in_another():
    """Only some parties take part in the first; all of them find one another in the second."""
    inner = NAMES[:2]

    def program(party):
        if party.name in inner:
            party.broadcast({"inner": 1}, inner, NEWS)
        return party.broadcast({"all": 1} if party.leads else None, NAMES, NEWS)

    got, _, _ = at_all(NAMES, program)
    assert got == {name: {"all": 1} for name in NAMES}


def test_sums_in_one_group_do_not_disturb_those_in_another():
    inner = NAMES[:3]

    def program(party):
        totals = []
        for _ in range(2):
            if party.name in inner:
                party.secure_sum(np.array([5], np.uint8), "bank", TOTAL, inner)
            totals.append(party.secure_sum(np.array([1], np.uint8), "bank", TOTAL))
        return totals

    got, _, _ = at_all(NAMES, program)
    assert [total.tolist() for total in got["bank"]] == [[4], [4]]


def test_a_broadcast_of_nothing_is_refused():
    party = make_party(local_meshes(["bank"])["bank"])
    with pytest.raises(InputError, match="payload must be given at bank"):
        party.broadcast(None, ("bank",), NEWS)


def test_the_total_that_a_group_shares_is_booked_as_open():
    _, parties, tape = at_all(
        NAMES[:3], lambda party: party.sum_to_group(np.ones(9, np.uint8), NAMES[:3], TOTAL)
    )
    masked, opened = [0, 0], [0, 0]
    for party in parties.values():
        for entry in party.ledger.entries():
            if entry.disclosure.name == TOTAL.name:
                book = masked if entry.disclosure.masked else opened
                book[0] += entry.frames
                book[1] += entry.bytes
    for tag, book in (("sum/", masked), ("broadcast/", opened)):
        sizes = [frame.size for frame in tape if frame.header.tag.startswith(tag)]
        assert book == [len(sizes), sum(sizes)] == [2, sum(sizes)]


def test_a_number_that_cannot_be_encoded_is_named():
    party = make_party(local_meshes(["bank"])["bank"])
    with (
        pytest.raises(RingError, match="bank: column 'age': fixed point: values must be finite"),
        party.naming("column 'age'"),
    ):
        Ring(64).encode_reals(np.array([np.nan]), 10, 2)
    with pytest.raises(KeyError), party.naming("column 'age'"):
        raise KeyError("something else")


def test_secrets_are_this_partys_own_and_one_per_purpose():
    got, _, _ = at_all(NAMES, lambda party: (party.secret("x"), party.secret("y"), party.secret()))
    secrets = [secret for some in got.values() for secret in some]
    assert len(set(secrets)) == len(secrets) == 12
    assert got["bank"][0] == prg.derive_key(hashlib.sha256(b"bank").digest(), "x")


def test_pads_are_fresh_in_every_run_though_the_secret_is_the_same():
    def program(party):
        return party.secure_sum(np.zeros(64, np.uint8), "bank", TOTAL)

    frames = set()
    for _ in range(3):
        _, _, tape = at_all(NAMES[:2], program)
        (frame,) = tape.arrays("sum/total/")
        frames.add(frame.tobytes())
    assert len(frames) == 3


def test_messages_of_one_kind_arrive_in_order_and_are_booked():
    def program(party):
        if party.name == "bank":
            for number in range(3):
                party.tell("alma", np.array([number]), NEWS)
            return None
        return [int(party.hear("bank", NEWS)[0]) for _ in range(3)]

    results, parties, _ = at_all(NAMES[:2], program)
    assert results["alma"] == [0, 1, 2]
    (entry,) = [e for e in parties["bank"].ledger.entries() if e.disclosure == NEWS]
    assert (entry.receiver, entry.frames) == ("alma", 3)


def test_a_party_goes_on_without_another_only_when_it_sees_it_gone():
    ends = local_meshes(NAMES, 0.3)
    parties = run(ends, make_party).unwrap()
    bank = parties["bank"]
    assert bank.deadline == 0.3
    with pytest.raises(DeadlineExceeded, match="nothing from alma"):
        bank.go_on_without("alma")
    ends["alma"].fail("why")
    with pytest.raises(PeerStopped):
        bank.hear("shop", NEWS)
    bank.go_on_without("alma")
    with pytest.raises(DeadlineExceeded, match="nothing from shop"):
        bank.hear("shop", NEWS)
    ends["shop"].fail("why")
    with pytest.raises(PeerStopped, match="shop stopped"):
        bank.go_on_without("clinic")


class Settings(msgspec.Struct):
    width: int
    kernel: str


class Reordered(msgspec.Struct):
    kernel: str
    width: int


def test_the_digest_depends_on_values_and_not_on_their_order():
    one = digest(Settings(3, "gaussian"))
    assert one == hashlib.sha256(b'{"kernel":"gaussian","width":3}').hexdigest()
    assert one == digest(Reordered("gaussian", 3))
    assert one != digest(Settings(4, "gaussian"))
