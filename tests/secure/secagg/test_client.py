"""The client, stage by stage: what it sends, and what it refuses."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.naive.secagg import pad
from tests.secure.secagg.secagg_table import NAMES, Seats, circle_of
from vertikal.errors import InputError, SecrecyError, ThresholdMissed
from vertikal.secure.keys.prg import derive_key
from vertikal.secure.secagg import client, shamir
from vertikal.secure.secagg.client_keys import ExchangeKey, decrypt, encrypt, is_signed
from vertikal.secure.secagg.neighbours import NeighbourPlan, everybody
from vertikal.secure.secagg.rounds import (
    Confirmations,
    EncryptedShares,
    Roster,
    Survivors,
    commitment,
)
from vertikal.secure.secagg.shamir import SHARE_BYTES


@pytest.fixture
def seats() -> Seats:
    return Seats.take()


def test_stage_1_keys_are_signed_and_secrets_are_not_in_them(seats):
    state = seats.clients["ada"]
    said = client.advertise(state)
    words = seats.terms.signed_parts(said)
    assert is_signed(seats.signing_keys["ada"].public, said.signature, *words)
    assert said.cipher_key != said.pad_key
    assert said.commitment == commitment(state.self_secret)
    assert state.pad_secret.hex() not in repr(state)
    assert state.self_secret.hex() not in repr(state)


def test_stage_2_each_neighbour_can_open_its_share_and_only_its_own(seats):
    rosters = seats.advertised()
    ada = seats.clients["ada"]
    encrypted = client.share(ada, rosters["ada"]).encrypted
    assert set(encrypted) == set(NAMES) - {"ada"}
    pads, selves = {}, {}
    for name in encrypted:
        reader = seats.clients[name]
        key = reader.cipher_key.with_peer(ada.cipher_key.public, "job")
        pair = decrypt(key, "ada", name, encrypted[name])
        number = seats.terms.numbers[name]
        pads[number] = int.from_bytes(pair[:SHARE_BYTES], "big")
        selves[number] = int.from_bytes(pair[SHARE_BYTES:], "big")
        other = next(n for n in encrypted if n != name)
        with pytest.raises(SecrecyError, match="do not open"):
            decrypt(key, "ada", name, encrypted[other])
    assert shamir.join(pads, seats.terms.threshold) == ada.pad_secret
    assert shamir.join(selves, seats.terms.threshold) == ada.self_secret


def test_stage_3_the_vector_carries_a_self_mask_and_one_pad_per_neighbour():
    seats = Seats.take(plan=everybody(6, 4))
    inboxes = seats.shared(seats.advertised(gone=["fay"]), gone=["eve"])
    state = seats.clients["bob"]
    before = seats.values["bob"].copy()
    masked = client.mask(state, inboxes["bob"], seats.values["bob"])
    assert np.array_equal(seats.values["bob"], before)
    expected = before.astype(int)
    expected += pad(derive_key(state.self_secret, "self-mask"), 5, 2)
    mine = client.pad_key(state.pad_secret)
    # Neither fay, who advertised nothing, nor eve, who shared nothing, has a pad with bob.
    for peer, sign in (("ada", -1), ("cyd", 1), ("dan", 1)):
        theirs = client.pad_key(seats.clients[peer].pad_secret)
        key, found = client.pad_stream(mine, "bob", theirs.public, peer)
        assert found == sign
        expected += sign * np.array(pad(key, 5, 2))
    assert masked.tolist() == (expected % 2**16).tolist()


def test_stage_4_one_share_about_each_client_and_never_both(seats):
    told = seats.up_to_survivors(gone=["dan"])
    answers = seats.revealed(seats.confirmed(told))
    for answer in answers.values():
        assert set(answer.self_masks) == set(told.clients)
        assert set(answer.pad_keys) == {"dan"}
    for state in seats.clients.values():
        if state.name != "dan":
            assert not state.held


@pytest.mark.parametrize("stage", range(6))
def test_no_round_is_answered_twice(seats, stage):
    commitments = seats.committed()
    rosters = seats.opened(commitments)
    inboxes = seats.shared(rosters)
    told = seats.masked(inboxes)
    codes = seats.confirmed(told)
    seats.revealed(codes)
    ada = seats.clients["ada"]
    again = [
        lambda: client.advertise(ada),
        lambda: client.open_coin(ada, commitments),
        lambda: client.share(ada, rosters["ada"]),
        lambda: client.mask(ada, inboxes["ada"], seats.values["ada"]),
        # The attack on double masking: the same client, now called a drop-out.
        lambda: client.confirm(ada, Survivors([n for n in told.clients if n != "bob"])),
        lambda: client.unmask(ada, codes["ada"]),
    ]
    with pytest.raises(SecrecyError, match="out of order, 'nothing' comes next"):
        again[stage]()


def test_nobody_confirms_before_the_coins_are_shown(seats):
    ada = seats.clients["ada"]
    ada.done = 4
    with pytest.raises(SecrecyError, match="ada: the coins that draw the neighbours are not known"):
        client.confirm(ada, Survivors(list(NAMES)))


def test_rounds_come_in_order(seats):
    with pytest.raises(SecrecyError, match="'unmask' is out of order, 'advertise keys' comes next"):
        client.unmask(seats.clients["ada"], Confirmations({}))


def test_forged_keys_are_refused(seats):
    roster = seats.advertised()["ada"]
    first, *rest = roster.advertisements
    forged = msgspec.structs.replace(first, pad_key=ExchangeKey(bytes(31), "pads").public)
    with pytest.raises(SecrecyError, match=f"keys of {first.client} are not signed"):
        client.share(seats.clients["ada"], Roster([forged, *rest], {}))


def test_keys_of_another_job_are_refused(seats):
    other = Seats.take()
    other.signing_keys.update(seats.signing_keys)
    said = [client.advertise(s) for n, s in other.clients.items() if n != "ada"]
    seats.advertised()
    with pytest.raises(SecrecyError, match="not signed"):
        client.share(seats.clients["ada"], Roster(said, {}))


def test_repeated_keys_and_names_are_refused(seats):
    roster = seats.advertised()["ada"]
    twice = Roster([*roster.advertisements, roster.advertisements[0]], {})
    with pytest.raises(SecrecyError, match="advertised twice"):
        client.share(seats.clients["ada"], twice)
    fresh = Seats.take()
    # Bob signs Ada's own key: it is his signature, but not his key.
    fresh.clients["bob"].cipher_key = fresh.clients["ada"].cipher_key
    said = [client.advertise(s) for s in fresh.clients.values()][1:]
    fresh.clients["ada"].done = 2
    with pytest.raises(SecrecyError, match="public key was advertised twice"):
        client.share(fresh.clients["ada"], Roster(said, {}))


def test_strangers_are_refused(seats):
    roster = seats.advertised()["ada"]
    nobody = msgspec.structs.replace(roster.advertisements[0], client="zoe")
    with pytest.raises(SecrecyError, match="zoe is not a client"):
        client.share(seats.clients["ada"], Roster([nobody], {}))


def test_who_is_no_neighbour_is_refused():
    names = tuple(f"c{i}" for i in range(12))
    seats = Seats.take(names, plan=NeighbourPlan(12, 4, 4))
    rosters = seats.advertised()
    neighbours = seats.centre.graph.of("c0")
    far = next(n for n in names[1:] if n not in neighbours)
    said = seats.centre.advertised[far]
    roster = msgspec.structs.replace(
        rosters["c0"], advertisements=[*rosters["c0"].advertisements, said]
    )
    with pytest.raises(SecrecyError, match=f"{far} is no neighbour"):
        client.share(seats.clients["c0"], roster)


def test_too_few_neighbours_are_refused_before_anything_is_shared(seats):
    roster = Roster(seats.advertised()["ada"].advertisements[:2], {})
    with pytest.raises(ThresholdMissed, match="ada: share keys: 3 of the holders"):
        client.share(seats.clients["ada"], roster)


def test_wrong_vectors_are_refused(seats):
    inboxes = seats.shared(seats.advertised())
    with pytest.raises(InputError, match=r"values of ada must be uint16 \(5,\), got uint32"):
        client.mask(seats.clients["ada"], inboxes["ada"], np.zeros(5, np.uint32))
    with pytest.raises(InputError, match=r"got uint16 \(4,\)"):
        client.mask(seats.clients["bob"], inboxes["bob"], np.zeros(4, np.uint16))


def test_changed_shares_are_refused(seats):
    inbox = seats.shared(seats.advertised())["ada"]
    changed = dict(inbox.encrypted)
    changed["bob"] = changed["bob"][:-1] + bytes([changed["bob"][-1] ^ 1])
    with pytest.raises(SecrecyError, match="encrypted shares of bob do not open"):
        client.mask(seats.clients["ada"], EncryptedShares(changed), seats.values["ada"])


def test_shares_of_strangers_and_of_wrong_length_are_refused(seats):
    inbox = seats.shared(seats.advertised(gone=["fay"]))["ada"]
    with pytest.raises(SecrecyError, match="shares of fay, who advertised no keys"):
        client.mask(
            seats.clients["ada"],
            EncryptedShares({**inbox.encrypted, "fay": b"x"}),
            seats.values["ada"],
        )
    fresh = Seats.take()
    inbox = fresh.shared(fresh.advertised())["ada"]
    key = fresh.clients["bob"].pair_keys["ada"]
    short = EncryptedShares({**inbox.encrypted, "bob": encrypt(key, "bob", "ada", b"short")})
    with pytest.raises(SecrecyError, match="must have 64 bytes, got 5"):
        client.mask(fresh.clients["ada"], short, fresh.values["ada"])


def test_too_few_sharers_are_refused_before_anything_is_masked(seats):
    inbox = seats.shared(seats.advertised())["ada"]
    few = EncryptedShares(dict(list(inbox.encrypted.items())[:2]))
    with pytest.raises(ThresholdMissed, match="ada: masked input: 3 of the holders"):
        client.mask(seats.clients["ada"], few, seats.values["ada"])


@pytest.mark.parametrize(
    "told",
    [
        ["ada", "bob", "cyd", "dan", "eve", "zoe"],  # a stranger
        ["bob", "cyd", "dan", "eve", "fay"],  # not the client itself
        ["ada", "bob", "cyd", "dan", "eve", "eve"],  # one twice
    ],
)
def test_impossible_survivors_are_refused(seats, told):
    seats.up_to_survivors()
    with pytest.raises(SecrecyError, match="survivors must be different clients"):
        client.confirm(seats.clients["ada"], Survivors(told))


def test_survivors_that_never_shared_are_refused(seats):
    seats.masked(seats.shared(seats.advertised(), gone=["fay"]))
    with pytest.raises(SecrecyError, match=r"survivors must be .* got \['fay'\]"):
        client.confirm(seats.clients["ada"], Survivors(list(NAMES)))


def test_too_few_survivors_are_refused(seats):
    seats.up_to_survivors()
    with pytest.raises(ThresholdMissed, match="ada: confirm survivors: 3 of the holders"):
        client.confirm(seats.clients["ada"], Survivors(["ada", "bob", "cyd"]))


def test_survivors_in_separate_groups_are_refused():
    names = tuple(f"c{i}" for i in range(16))
    seats = Seats.take(names, plan=NeighbourPlan(16, 4, 4))
    inboxes = seats.shared(seats.advertised())
    circle = circle_of(seats.centre.graph)
    name = circle[3]
    client.mask(seats.clients[name], inboxes[name], seats.values[name])
    # Two runs of two neighbours are gone: the rest falls into two groups.
    rest = [n for i, n in enumerate(circle) if i not in (0, 1, 8, 9)]
    with pytest.raises(ThresholdMissed, match="separate groups"):
        client.confirm(seats.clients[name], Survivors(rest))


def test_a_server_that_tells_two_stories_opens_nothing(seats):
    """Half of the clients hear that dan survived, half that he left: both shares of dan, if they
    believed it."""
    told = seats.up_to_survivors()
    story = Survivors([name for name in told.clients if name != "dan"])
    first, second = ["ada", "bob", "cyd"], ["eve", "fay"]
    said = {name: client.confirm(seats.clients[name], told) for name in first}
    said |= {name: client.confirm(seats.clients[name], story) for name in second}
    for name in (*first, *second):
        codes = {p: c.codes[name] for p, c in said.items() if p != name and name in c.codes}
        with pytest.raises(SecrecyError, match="told clients different things"):
            client.unmask(seats.clients[name], Confirmations(codes))
        alone = [p for p in (first if name in first else second) if p != name]
        seats.clients[name].done = 5
        with pytest.raises(ThresholdMissed, match="unmask"):
            client.unmask(
                seats.clients[name], Confirmations({p: said[p].codes[name] for p in alone})
            )
        assert seats.clients[name].held


def test_confirmations_of_strangers_are_refused(seats):
    codes = seats.confirmed(seats.up_to_survivors(gone=["dan"]))
    with pytest.raises(SecrecyError, match="dan cannot confirm"):
        client.unmask(seats.clients["ada"], Confirmations({**codes["ada"].codes, "dan": b"x"}))
