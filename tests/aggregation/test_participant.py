"""A client against a server that cheats: it checks everything itself, and refuses.

The server here is the pure functions of `secure.secagg`, used against their purpose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.device_folder import ServerAddress, sign_for
from vertikal.aggregation.enrolment import enrol, job_of
from vertikal.aggregation.messages import (
    Abandoned,
    Announced,
    Challenge,
    Coins,
    Confirmed,
    Done,
    Inbox,
    Neighbourhood,
    Refused,
    RoundOffer,
    RoundPending,
    Welcome,
)
from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.participant import MOST_OFFERS, Participant
from vertikal.aggregation.task import Task, Tile
from vertikal.errors import (
    AgreementError,
    IdentityError,
    PeerVisibleError,
    SecrecyError,
    ThresholdMissed,
    VertikalError,
)
from vertikal.secure.secagg import server
from vertikal.secure.secagg.client_keys import SigningKey
from vertikal.secure.secagg.neighbours import everybody
from vertikal.secure.secagg.rounds import CoinCommitments, Terms

NAMES = [f"c{i}" for i in range(6)]
LATER = ["c6", "c7", "c8"]
ROWS = 3
TASK = Task(kind="columns", rows=ROWS, largest=99)
TILE = Tile(0, ROWS, 0, ROWS)
POLICY = RoundPolicy(fewest=4, difference=3)
MINE = "sha256:me"


@dataclass
class Play:
    """Clients, and a server that a test leads from question to question."""

    authority: SigningKey
    keys: dict[str, SigningKey]
    clients: dict[str, Participant]
    centre: server.ServerState | None = None
    reference: str = ""
    rounds: int = 0

    @classmethod
    def begin(cls, policy: RoundPolicy = POLICY) -> Play:
        authority = SigningKey.fresh()
        address = ServerAddress("play", "127.0.0.1:1", MINE, authority.public)
        keys = {name: SigningKey.fresh() for name in (*NAMES, *LATER)}
        clients = {}
        for number, (name, key) in enumerate(keys.items()):
            ticket = sign_for(authority, address, name, key.public)
            one = Participant(ticket, key, authority.public, policy, OpenedRounds())
            one.greet(Challenge(1, "play", bytes(32)), "play", MINE)
            one.task = TASK
            one.give(Contribution(np.arange(ROWS) + number, TASK))
            clients[name] = one
        return cls(authority, keys, clients)

    def offer(self, names: Iterable[str]) -> RoundOffer:
        names = list(names)
        self.rounds += 1
        self.reference = f"{self.rounds:032d}"
        plan = everybody(len(names), len(names) // 2 + 1)
        public = {name: self.keys[name].public for name in names}
        job = job_of("play", self.reference)
        terms = Terms(job, tuple(names), plan, public, TASK.ring, TILE.length)
        self.centre = server.ServerState(terms)
        return RoundOffer(self.reference, TILE, names, plan.degree, plan.threshold)

    def advertised(self, names: Iterable[str] = NAMES) -> dict[str, Neighbourhood]:
        """Keys and coins: what each client is told about its neighbours."""
        offer = self.offer(names)
        said = {name: self.clients[name].answer(offer).said for name in offer.clients}
        fixed = server.collect_keys(self.centre, said)
        coins = {name: self.clients[name].answer(Coins(fixed.commitments)).opening for name in said}
        tickets = [enrol(self.authority, "play", n, self.keys[n].public) for n in said]
        rosters = server.collect_openings(self.centre, coins)
        return {name: Neighbourhood(roster, tickets) for name, roster in rosters.items()}

    def masked(self, names: Iterable[str] = NAMES, gone: Iterable[str] = ()) -> list[str]:
        """Shares and vectors: who survives."""
        shares = {n: self.clients[n].answer(q).shares for n, q in self.advertised(names).items()}
        for name, inbox in server.deliver_shares(self.centre, shares).items():
            if name not in set(gone):
                vector = self.clients[name].answer(Inbox(inbox))
                server.add_masked(self.centre, name, vector)
        return server.survivors(self.centre).clients

    def confirmed(self, survivors: list[str]) -> dict[str, Confirmed]:
        said = {n: self.clients[n].answer(Announced(survivors)).said for n in survivors}
        codes = server.collect_confirmations(self.centre, said)
        return {name: Confirmed(one) for name, one in codes.items()}

    def opened(self, names: Iterable[str] = NAMES, gone: Iterable[str] = ()) -> np.ndarray:
        codes = self.confirmed(self.masked(names, gone))
        revealed = {name: self.clients[name].answer(one).revealed for name, one in codes.items()}
        total = server.unmask(self.centre, revealed)
        for name in codes:
            assert isinstance(self.clients[name].answer(Done(self.reference, 1)), Done)
        return total


def plain(names: Iterable[str]) -> np.ndarray:
    upper = np.triu_indices(ROWS)
    return sum(
        np.outer(x, x)[upper] for x in (np.arange(ROWS) + NAMES.index(name) for name in names)
    )


def test_an_honest_server_gets_the_sum():
    play = Play.begin()
    assert np.array_equal(play.opened(), plain(NAMES).astype(TASK.ring.dtype))
    other = Play.begin()
    assert np.array_equal(other.opened(gone=["c2"]), plain(set(NAMES) - {"c2"}))


def test_frames_show_neither_the_vector_nor_both_kinds_of_share():
    play = Play.begin()
    survivors = play.masked(gone=["c2"])
    assert not np.array_equal(play.centre.total, plain(survivors))
    for name, codes in play.confirmed(survivors).items():
        given = play.clients[name].answer(codes).revealed
        assert not given.self_masks.keys() & given.pad_keys.keys()
        assert set(given.pad_keys) == {"c2"}
        assert set(given.self_masks) == set(survivors)


def test_a_server_that_asks_again_with_other_survivors_gets_nothing():
    """With shares of both secrets of c2 it could take the vector of c2 out of its masks."""
    play = Play.begin()
    survivors = play.masked()
    codes = play.confirmed(survivors)
    one = play.clients["c0"]
    one.answer(codes["c0"])
    without = [name for name in survivors if name != "c2"]
    for question, refusal in (
        (codes["c0"], "is out of order"),
        (Announced(survivors), "is out of order"),
        (Announced(without), "differ by 1 clients"),
    ):
        with pytest.raises(SecrecyError, match=refusal):
            one.answer(question)


def test_a_server_that_was_started_again_cannot_go_on_with_an_old_round():
    play = Play.begin()
    survivors = play.masked()
    codes = play.confirmed(survivors)
    one = play.clients["c0"]
    for forgotten in (Abandoned(play.reference, "restart"), play.offer(NAMES)):
        one.answer(forgotten)
        with pytest.raises(SecrecyError, match=r"not under way here|is out of order"):
            one.answer(codes["c0"])


def test_survivors_that_were_told_differently_open_nothing():
    play = Play.begin(RoundPolicy(fewest=2, difference=1))
    survivors = play.masked()
    fewer = [name for name in survivors if name != "c5"]
    said = {n: play.clients[n].answer(Announced(fewer)).said for n in ("c0", "c1")}
    said |= {n: play.clients[n].answer(Announced(survivors)).said for n in ("c2", "c3", "c4", "c5")}
    codes = server.collect_confirmations(play.centre, said)
    for name in ("c0", "c2"):
        with pytest.raises(SecrecyError, match=r"did not confirm|cannot confirm anything"):
            play.clients[name].answer(Confirmed(codes[name]))


def test_a_round_of_too_few_is_not_begun():
    play = Play.begin()
    with pytest.raises(ThresholdMissed, match="c0: a round of 3 clients, at least 4 must"):
        play.clients["c0"].answer(play.offer(NAMES[:3]))


def test_a_sum_over_too_few_is_not_opened():
    play = Play.begin(RoundPolicy(fewest=6, difference=1))
    survivors = play.masked(gone=["c2"])
    with pytest.raises(ThresholdMissed, match="c0: a sum over 5 clients, at least 6 must"):
        play.clients["c0"].answer(Announced(survivors))


def test_two_rounds_that_differ_by_one_client_are_not_opened():
    play = Play.begin()
    play.opened()
    survivors = play.masked(gone=["c2"])
    for name in survivors:
        with pytest.raises(SecrecyError, match="differ by 1 clients, whose numbers would follow"):
            play.clients[name].answer(Announced(survivors))


def test_the_same_clients_are_summed_again_unless_numbers_have_changed():
    play = Play.begin()
    play.opened()
    play.opened()
    play.clients["c3"].give(Contribution(np.arange(ROWS), TASK))
    with pytest.raises(SecrecyError, match=r"c3: the numbers here have changed .* nothing is sent"):
        play.clients["c3"].answer(play.offer(NAMES))


def grown(play: Play) -> list[str]:
    """Open a sum over the first six clients, change c3, and offer three more, who then vanish."""
    play.opened()
    play.clients["c3"].give(Contribution(np.arange(ROWS), TASK))
    return play.masked([*NAMES, *LATER], gone=LATER)


def test_whoever_has_changed_numbers_stops_a_sum_over_the_same_clients():
    """The vector of c3 is with the server by then, and the others could open the sum without c3."""
    play = Play.begin()
    survivors = grown(play)
    assert survivors == NAMES
    with pytest.raises(SecrecyError, match=r"c3: .* the numbers here have changed since"):
        play.clients["c3"].answer(Announced(survivors))
    others = [name for name in NAMES if name != "c3"]
    said = {n: play.clients[n].answer(Announced(survivors)).said for n in others}
    codes = server.collect_confirmations(play.centre, said)
    for name in others:
        with pytest.raises(SecrecyError, match=r"\['c3'\] have not confirmed this one"):
            play.clients[name].answer(Confirmed(codes[name]))


def test_a_client_that_is_cut_off_counts_the_sum_as_opened():
    """A server that hangs up on c3 once it has its vector opens the sum without telling c3."""
    play = Play.begin()
    survivors = play.masked()
    others = [name for name in NAMES if name != "c3"]
    said = {n: play.clients[n].answer(Announced(survivors)).said for n in others}
    for name, codes in server.collect_confirmations(play.centre, said).items():
        play.clients[name].answer(Confirmed(codes))
    one = play.clients["c3"]
    one.answer(Abandoned(play.reference, "sorry"))
    one.give(Contribution(np.arange(ROWS), TASK))
    with pytest.raises(SecrecyError, match=r"c3: the numbers here have changed .* nothing is sent"):
        one.answer(play.offer(NAMES))
    survivors = play.masked([*NAMES, *LATER], gone=LATER)
    with pytest.raises(SecrecyError, match="had the same clients, or may have had"):
        one.answer(Announced(survivors))
    # With enough others in the sum its change does not show.
    survivors = play.masked([*NAMES, *LATER])
    one.answer(Announced(survivors))


def test_clients_that_nobody_enrolled_are_refused():
    play = Play.begin()
    told = play.advertised()["c0"]
    false = SigningKey.fresh()
    forged = [enrol(false, "play", t.name, t.key) for t in told.tickets if t.name != "c1"]
    with pytest.raises(IdentityError, match="'c0' is not enrolled"):
        play.clients["c1"].answer(msgspec.structs.replace(told, tickets=forged))
    with pytest.raises(SecrecyError, match="another key came under this client's name"):
        play.clients["c2"].answer(
            Neighbourhood(told.roster, [enrol(play.authority, "play", "c2", false.public)])
        )
    with pytest.raises(SecrecyError, match="is not a client of this aggregation"):
        play.clients["c0"].answer(msgspec.structs.replace(told, tickets=[]))


WRONG_OFFERS = {
    "the clients of a round must be different": lambda o: msgspec.structs.replace(
        o, clients=[*o.clients[1:], "x"]
    ),
    "this one among them": lambda o: msgspec.structs.replace(
        o, clients=[*o.clients, o.clients[0]], degree=6, threshold=6
    ),
    "threshold must be from 4": lambda o: msgspec.structs.replace(o, threshold=2),
    "tile must be one of": lambda o: msgspec.structs.replace(o, tile=Tile(0, 3000, 0, 3000)),
    "is not safe against": lambda o: msgspec.structs.replace(
        o, clients=[*o.clients, *(f"x{i}" for i in range(500))], degree=2, threshold=2
    ),
}


@pytest.mark.parametrize("words", WRONG_OFFERS)
def test_wrong_offers_are_refused(words):
    play = Play.begin()
    offer = play.offer(NAMES)
    with pytest.raises(VertikalError, match=words):
        play.clients["c0"].answer(WRONG_OFFERS[words](offer))


def test_a_round_is_drawn_anew_only_so_often():
    play = Play.begin()
    for _ in range(MOST_OFFERS):
        play.clients["c0"].answer(play.offer(NAMES))
    with pytest.raises(SecrecyError, match="rounds were begun and none opened"):
        play.clients["c0"].answer(play.offer(NAMES))


def test_questions_outside_a_round_are_refused():
    one = Play.begin().clients["c0"]
    assert one.answer(RoundPending(3, "few")) is None
    for question in (Coins({}), Announced([]), Welcome(TASK)):
        with pytest.raises(SecrecyError):
            one.answer(question)
    with pytest.raises(PeerVisibleError, match="the server refuses: go away"):
        one.answer(Refused("go away"))


def test_another_aggregation_is_not_greeted():
    one = Play.begin().clients["c0"]
    for said in (Challenge(1, "other", bytes(32)), Challenge(2, "play", bytes(32))):
        with pytest.raises(AgreementError, match="expected 'play' with protocol 1"):
            one.greet(said, "play", MINE)


def test_commitments_of_coins_must_have_the_own_one():
    play = Play.begin()
    play.clients["c0"].answer(play.offer(NAMES))
    with pytest.raises(SecrecyError, match="the commitments must be those of clients"):
        play.clients["c0"].answer(Coins(CoinCommitments({"c1": bytes(32)}).commitments))
