"""Coins: no name that was fixed before they were shown chooses its neighbours."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from tests.naive.secagg import circle_neighbours
from tests.secure.secagg.secagg_table import Seats
from vertikal.errors import SecrecyError, ThresholdMissed
from vertikal.ring.integers import Ring
from vertikal.secure.keys.prg import encode_texts
from vertikal.secure.secagg import client, server
from vertikal.secure.secagg.client_keys import SigningKey
from vertikal.secure.secagg.coins import COMMITTEE, choose_committee, coin_commitment
from vertikal.secure.secagg.in_one_process import aggregate
from vertikal.secure.secagg.neighbours import NeighbourPlan, Neighbours, plan_neighbours
from vertikal.secure.secagg.rounds import CoinCommitments, CoinOpening, Roster, Terms

VICTIM = "user007"
SYBILS = 70


def ground_names(honest: list[str], place: Callable[[str], int]) -> list[str]:
    """Names that lie between the victim and its next neighbours, as far as somebody can foresee."""
    at, others = place(VICTIM), sorted(place(name) for name in honest if name != VICTIM)
    before = max(p for p in others if p < at)
    after = min(p for p in others if p > at)
    sides: tuple[list[str], list[str]] = [], []
    tried = 0
    while len(sides[0]) + len(sides[1]) < SYBILS:
        name, tried = f"sybil{tried}", tried + 1
        side = sides[place(name) > at]
        if before < place(name) < after and len(side) < SYBILS // 2:
            side.append(name)
    return sides[0] + sides[1]


def foreseen_place(seed: bytes) -> Callable[[str], int]:
    """Places on the circle of this seed, which is the hash that decided before there were coins."""

    def place(name: str) -> int:
        return int.from_bytes(hashlib.sha256(seed + encode_texts("circle", name)).digest(), "big")

    return place


def test_who_knows_the_seed_surrounds_a_victim():
    """The attack itself: it worked in a second, while the job's name was all the seed there was."""
    seed = encode_texts("job")
    honest = [f"user{i:03d}" for i in range(1000 - SYBILS)]
    sybils = ground_names(honest, foreseen_place(seed))
    plan = plan_neighbours(1000)
    found = set(Neighbours(seed, (*honest, *sybils), plan).of(VICTIM)) & set(sybils)
    assert len(found) == plan.degree >= plan.threshold


def test_names_that_were_ground_surround_nobody():
    """The same 70 of 1,000, who also speak last in every round: they hold too few of the shares."""
    honest = [f"user{i:03d}" for i in range(1000 - SYBILS)]
    sybils = ground_names(honest, foreseen_place(encode_texts("job")))
    names, plan = (*honest, *sybils), plan_neighbours(1000)
    signing_keys = {name: SigningKey.fresh() for name in names}
    public = {name: key.public for name, key in signing_keys.items()}
    terms = Terms("job", names, plan, public, Ring(16), 1)
    states = {name: client.ClientState(name, terms, signing_keys[name]) for name in names}
    centre = server.ServerState(terms)
    said = {name: client.advertise(states[name]) for name in names}
    told = server.collect_keys(centre, said)
    openings = {name: client.open_coin(states[name], told) for name in names}
    roster = server.collect_openings(centre, openings)[VICTIM]
    encrypted = client.share(states[VICTIM], roster).encrypted
    assert len(encrypted) == plan.degree
    assert len(set(encrypted) & set(sybils)) < plan.threshold / 2


def seats_on_a_circle(count: int = 60) -> Seats:
    return Seats.take([f"c{i:02d}" for i in range(count)], plan=NeighbourPlan(count, 6, 5))


def test_the_graph_is_that_of_the_shown_coins():
    seats = seats_on_a_circle()
    told = seats.committed()
    seats.opened(told)
    committee = seats.centre.committee
    assert len(committee) == COMMITTEE
    coins = {name: seats.clients[name].coin for name in committee}
    expected = circle_neighbours("job", told.commitments, coins, 6)
    assert {name: set(seats.centre.graph.of(name)) for name in seats.clients} == expected


def test_every_coin_of_the_committee_matters_and_no_other():
    told = CoinCommitments({f"c{i:02d}": bytes([i]) * 32 for i in range(60)})
    committee = choose_committee(b"digest", told.commitments)
    assert len(set(committee)) == COMMITTEE
    assert committee != choose_committee(b"another", told.commitments)


def test_a_coin_is_shown_by_the_committee_only_and_is_hidden_before():
    seats = seats_on_a_circle()
    told = seats.committed()
    for name, state in seats.clients.items():
        said = msgspec.msgpack.encode(seats.centre.advertised[name])
        assert state.coin not in said
        assert state.coin.hex() not in repr(state)
        opening = client.open_coin(state, told)
        assert opening.coin == (state.coin if name in seats.centre.committee else b"")


def test_clients_that_are_all_neighbours_need_no_coins():
    seats = Seats.take()
    told = seats.committed()
    assert {client.open_coin(s, told) for s in seats.clients.values()} == {CoinOpening(b"", b"")}


def test_commitments_that_cannot_be_are_refused():
    seats = seats_on_a_circle()
    told = seats.committed()
    ada, bob = (seats.clients[name] for name in ("c00", "c01"))
    stranger = CoinCommitments({**told.commitments, "zoe": bytes(32)})
    with pytest.raises(SecrecyError, match=r"those of clients, .* got \['zoe'\]"):
        client.open_coin(ada, stranger)
    forged = CoinCommitments({**told.commitments, "c01": coin_commitment("c01", bytes(32))})
    with pytest.raises(SecrecyError, match="another one in its name"):
        client.open_coin(bob, forged)
    few = CoinCommitments({f"c{i:02d}": told.commitments[f"c{i:02d}"] for i in range(30)})
    with pytest.raises(ThresholdMissed, match="c02: open coins: 30 of 60 clients have advertised"):
        client.open_coin(seats.clients["c02"], few)


def test_a_server_that_tells_one_client_of_other_commitments_gets_no_share():
    """It knows all coins by then, and could choose what it says of the victim's neighbours."""
    seats = seats_on_a_circle()
    told = seats.committed()
    victim = "c05"
    rosters = {}
    others = CoinCommitments({**told.commitments, "c06": coin_commitment("c06", bytes(32))})
    openings = {
        name: client.open_coin(state, others if name == victim else told)
        for name, state in seats.clients.items()
    }
    fits = {name: openings[name] for name in seats.centre.committee if name != victim}
    if victim in seats.centre.committee:
        # The victim signed the commitments that it was told, which the server would notice itself.
        with pytest.raises(SecrecyError, match=f"the coin of {victim} is not the one"):
            server.collect_openings(seats.centre, openings)
    else:
        rosters = server.collect_openings(seats.centre, openings)
    said = rosters[victim].advertisements if rosters else []
    state = seats.clients[victim]
    wanted = {name: fits.get(name, CoinOpening(bytes(32), bytes(64))) for name in state.committee}
    with pytest.raises(SecrecyError, match=r"c05: open coins: the coin of .* was told of other"):
        client.share(state, Roster(said, wanted))


def test_a_coin_that_is_withheld_forged_or_one_too_many_is_refused():
    seats = seats_on_a_circle()
    told = seats.committed()
    openings = {name: client.open_coin(state, told) for name, state in seats.clients.items()}
    member = next(iter(seats.centre.committee))
    less = {name: one for name, one in openings.items() if name != member}
    assert server.withheld(seats.centre, less) == [member]
    assert server.withheld(seats.centre, openings) == []
    with pytest.raises(SecrecyError, match=rf"must show their coins .*'{member}'.*; begin anew"):
        server.collect_openings(seats.centre, less)
    other = {**openings, member: CoinOpening(bytes(32), openings[member].signature)}
    with pytest.raises(SecrecyError, match=f"the coin of {member} is not the one it committed to"):
        server.collect_openings(seats.centre, other)
    roster = server.collect_openings(seats.centre, openings)["c00"]
    outside = next(name for name in seats.clients if name not in seats.centre.committee)
    more = {**roster.openings, outside: CoinOpening(b"", b"")}
    with pytest.raises(SecrecyError, match="and nobody else"):
        client.share(seats.clients["c00"], msgspec.structs.replace(roster, openings=more))


def test_an_aggregation_goes_on_without_members_that_vanish():
    """Ten of 60 vanish where 40 show their coins, so that all begin anew without them."""
    names = [f"c{i:02d}" for i in range(60)]
    drops = dict.fromkeys(names[::6], "open coins")
    plan = NeighbourPlan(60, 30, 16)
    found = aggregate(
        names, lambda _: np.ones(3, np.uint16), ring=Ring(16), length=3, plan=plan, drops=drops
    )
    assert found.total.tolist() == [50] * 3
    assert set(found.survivors) == set(names) - set(drops)
