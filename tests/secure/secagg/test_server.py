"""The server, stage by stage: what it passes on, what it opens, and what it refuses."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.naive.secagg import plain_sum
from tests.secure.secagg.secagg_table import NAMES, Seats, circle_of
from vertikal.errors import SecrecyError, ThresholdMissed
from vertikal.secure.secagg import client, server, shamir
from vertikal.secure.secagg.neighbours import NeighbourPlan
from vertikal.secure.secagg.rounds import EncryptedShares


@pytest.fixture
def seats() -> Seats:
    return Seats.take()


def test_nobody_drops(seats):
    total = server.unmask(seats.centre, seats.up_to_answers())
    assert np.array_equal(total, plain_sum(seats.values, NAMES))
    assert seats.centre.total is None


def test_one_drops_after_sharing(seats):
    total = server.unmask(seats.centre, seats.up_to_answers(gone=["cyd"]))
    assert np.array_equal(total, plain_sum(seats.values, set(NAMES) - {"cyd"}))


def test_the_sum_is_masked_until_the_end(seats):
    seats.up_to_survivors()
    assert not np.array_equal(seats.centre.total, plain_sum(seats.values, NAMES))


def test_keys_under_another_name_are_refused(seats):
    said = client.advertise(seats.clients["ada"])
    with pytest.raises(SecrecyError, match="bob advertised keys as ada"):
        server.collect_keys(seats.centre, {"bob": said})


def test_forged_and_repeated_keys_are_refused(seats):
    said = {name: client.advertise(state) for name, state in seats.clients.items()}
    forged = msgspec.structs.replace(said["ada"], cipher_key=said["bob"].cipher_key)
    with pytest.raises(SecrecyError, match="server: the keys of ada are not signed"):
        server.collect_keys(seats.centre, {**said, "ada": forged})
    fresh = Seats.take()
    fresh.clients["bob"].pad_secret = fresh.clients["ada"].pad_secret
    said = {name: client.advertise(state) for name, state in fresh.clients.items()}
    with pytest.raises(SecrecyError, match=r"advertised twice, by \['ada', 'bob'\]"):
        server.collect_keys(fresh.centre, said)


def test_incomplete_shares_are_refused(seats):
    rosters = seats.advertised()
    encrypted = {name: client.share(seats.clients[name], rosters[name]) for name in NAMES}
    some = EncryptedShares(dict(list(encrypted["ada"].encrypted.items())[1:]))
    with pytest.raises(SecrecyError, match=r"encrypt one share for each of its 5 .* got 4"):
        server.deliver_shares(seats.centre, {**encrypted, "ada": some})


def test_nothing_is_passed_on_before_the_coins_are_shown(seats):
    seats.committed()
    with pytest.raises(SecrecyError, match="coins that draw the neighbours are not known"):
        server.deliver_shares(seats.centre, {})


def test_a_vector_comes_once_and_in_time(seats):
    inboxes = seats.shared(seats.advertised(), gone=["fay"])
    vector = client.mask(seats.clients["ada"], inboxes["ada"], seats.values["ada"])
    server.add_masked(seats.centre, "ada", vector)
    for who in ("ada", "fay", "zoe"):
        with pytest.raises(SecrecyError, match=f"{who} may send one masked vector"):
            server.add_masked(seats.centre, who, vector)
    seats.masked({name: inbox for name, inbox in inboxes.items() if name != "ada"})
    with pytest.raises(SecrecyError, match="before the survivors are announced"):
        server.add_masked(seats.centre, "fay", vector)


@pytest.mark.parametrize("stage", range(6))
def test_below_the_threshold_each_round_refuses(seats, stage):
    """Six clients, five needed: two drop-outs are one too many, at whichever stage."""
    gone = [("ada", "bob") if stage == s else () for s in range(6)]
    with pytest.raises(ThresholdMissed, match="4 of 6 clients are there, at least 5 must be"):
        server.unmask(
            seats.centre,
            seats.revealed(
                seats.confirmed(
                    seats.masked(
                        seats.shared(seats.opened(seats.committed(gone[0]), gone[1]), gone[2]),
                        gone[3],
                    ),
                    gone[4],
                ),
                gone[5],
            ),
        )


def test_survivors_in_separate_groups_are_refused():
    names = tuple(f"c{i}" for i in range(16))
    seats = Seats.take(names, plan=NeighbourPlan(16, 4, 4))
    inboxes = seats.shared(seats.advertised())
    circle = circle_of(seats.centre.graph)
    gone = [circle[i] for i in (0, 1, 8, 9)]
    with pytest.raises(ThresholdMissed, match="server: masked input: the 12 survivors fall into"):
        seats.masked(inboxes, gone)


def test_too_few_shares_about_one_client_are_refused():
    names = tuple(f"c{i}" for i in range(16))
    seats = Seats.take(names, plan=NeighbourPlan(16, 4, 4))
    codes = seats.confirmed(seats.up_to_survivors())
    name = names[0]
    # Two of its four neighbours answer no more: with its own share that makes three, not four.
    answers = seats.revealed(codes, gone=seats.centre.graph.of(name)[:2])
    with pytest.raises(ThresholdMissed, match="shares of the self-mask of c"):
        server.unmask(seats.centre, answers)


@pytest.mark.parametrize("value", [b"\x00" * 32, b"\xff" * 32, b"\x01"])
@pytest.mark.parametrize(("kind", "whose"), [("self_masks", "bob"), ("pad_keys", "cyd")])
def test_a_share_that_does_not_fit_is_refused(seats, value, kind, whose):
    answers = seats.up_to_answers(gone=["cyd"])
    getattr(answers["ada"], kind)[whose] = value
    with pytest.raises(SecrecyError, match=f"of {whose} do not fit; some of .*'ada'.* gave wrong"):
        server.unmask(seats.centre, answers)


def test_a_share_of_the_right_form_that_does_not_fit_is_refused(seats):
    """Eve swaps two of her shares: each is a good share, of another client."""
    answers = seats.up_to_answers(gone=["cyd"])
    masks = answers["ada"].self_masks
    masks["bob"], masks["dan"] = masks["dan"], masks["bob"]
    with pytest.raises(SecrecyError, match="do not fit"):
        server.unmask(seats.centre, answers)


@pytest.mark.parametrize(
    ("kind", "whose", "what"),
    [("self_masks", "bob", "self-mask"), ("pad_keys", "cyd", "pads' key")],
)
def test_shares_of_another_secret_are_refused(seats, kind, whose, what):
    """All holders agree on another secret: it opens, and is not what the client committed to."""
    answers = seats.up_to_answers(gone=["cyd"])
    numbers = seats.terms.numbers
    shares = shamir.split(bytes(31), numbers.values(), seats.terms.threshold)
    for name, answer in answers.items():
        getattr(answer, kind)[whose] = shares[numbers[name]].to_bytes(32, "big")
    with pytest.raises(SecrecyError, match=f"shares of the {what} of {whose} do not fit"):
        server.unmask(seats.centre, answers)


def test_answers_with_both_kinds_are_refused(seats):
    answers = seats.up_to_answers(gone=["cyd"])
    answers["ada"].pad_keys["bob"] = bytes(32)
    with pytest.raises(SecrecyError, match="ada must give self-mask shares of survivors"):
        server.unmask(seats.centre, answers)


def test_nothing_to_open_is_refused(seats):
    answers = seats.up_to_answers()
    server.unmask(seats.centre, answers)
    with pytest.raises(SecrecyError, match="no masked vector"):
        server.unmask(seats.centre, answers)


@pytest.mark.parametrize(("kind", "whose"), [("self_masks", "bob"), ("pad_keys", "cyd")])
def test_one_wrong_share_is_found_out_where_there_is_one_to_spare(kind, whose):
    seats = Seats.take((*NAMES, "gil"), plan=NeighbourPlan(7, 6, 5))
    answers = seats.up_to_answers(gone=["cyd"])
    getattr(answers["ada"], kind)[whose] = bytes(32)
    total = server.unmask(seats.centre, answers)
    assert np.array_equal(total, plain_sum(seats.values, {*NAMES, "gil"} - {"cyd"}))
