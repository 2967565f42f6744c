"""A client of an aggregation without its connection: a question of the server in, the answer out.

It trusts nobody but the authority that enrolled the clients. It checks by itself who takes part, by
how many neighbours its secrets are held, and that no sum is opened which, with earlier ones, would
tell more than its policy allows. What it refuses raises; the caller then hangs up, and the server
is left with a drop-out.

Secrets of a round live in memory only, and each round has fresh ones: a client that is started
again, or is offered another round, cannot answer for an earlier one any more. So no server, however
often it is started again, gets both kinds of share about anybody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.enrolment import Ticket, check_ticket, hello_parts, job_of
from vertikal.aggregation.messages import (
    PROTOCOL,
    Abandoned,
    Announced,
    Challenge,
    ClientHello,
    ClientKeys,
    Codes,
    Coin,
    Coins,
    Confirmed,
    Done,
    Down,
    Inbox,
    Neighbourhood,
    Refused,
    RoundOffer,
    RoundPending,
    Shares,
    UnmaskingAnswer,
    Up,
)
from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.task import Task, Tile
from vertikal.errors import AgreementError, PeerVisibleError, SecrecyError, ThresholdMissed
from vertikal.secure.secagg import client
from vertikal.secure.secagg.client_keys import SigningKey
from vertikal.secure.secagg.neighbours import NeighbourPlan, check_secrecy
from vertikal.secure.secagg.rounds import STAGES, CoinCommitments, Survivors, Terms

Array = npt.NDArray[Any]

MOST_OFFERS = 64
"""Rounds that may begin anew before one is opened: each is another draw of the neighbours."""


@dataclass
class _Round:
    """The round that is under way."""

    reference: str
    tile: Tile
    given: Contribution
    numbers: bytes  # digest of what is given
    keys: dict[str, bytes]  # signing keys by client; `Terms` reads them as they become known
    state: client.ClientState = field(repr=False)
    survivors: list[str] = field(default_factory=list)
    expected: bool = False  # noted in the list when the vector left, and not before
    repeated: bool = False  # an earlier sum was over the same clients


class Participant:
    """One client in one connection: greets, and takes part in rounds."""

    def __init__(
        self,
        ticket: Ticket,
        key: SigningKey,
        authority: bytes,
        policy: RoundPolicy,
        opened: OpenedRounds,
    ) -> None:
        self.name = ticket.name
        self._ticket = ticket
        self._key = key
        self._authority = authority
        self._policy = policy
        self._opened = opened
        self._aggregation = ""
        self._tickets: dict[str, Ticket] = {}
        """Tickets that were checked, by name."""
        self._offers = 0
        self._round: _Round | None = None
        self._given: Contribution | None = None
        self.task: Task | None = None

    def greet(self, said: Challenge, aggregation: str, fingerprint: str) -> ClientHello:
        """Show who this client is, to this server alone."""
        if (said.protocol, said.aggregation) != (PROTOCOL, aggregation):
            raise AgreementError(
                f"{self.name}: the server is that of {said.aggregation!r} with protocol "
                f"{said.protocol}, expected {aggregation!r} with protocol {PROTOCOL}"
            )
        self._aggregation = aggregation
        parts = hello_parts(aggregation, fingerprint, said.nonce)
        return ClientHello(self._ticket, self._key.sign(*parts))

    def give(self, numbers: Contribution) -> None:
        """Set what this client adds to the next sum; a round that is under way is left."""
        self._round = None
        self._given = numbers

    @property
    def stage(self) -> str:
        """The stage that this client answered last, "" outside a round."""
        return "" if self._round is None else STAGES[self._round.state.done - 1]

    def answer(self, said: Down) -> Up | Array | Done | None:
        """Answer a question; `Done` once the round is over, None where the server wants nothing."""
        match said:
            case RoundPending():
                return None
            case RoundOffer():
                return self._begin(said)
            case Coins():
                told = CoinCommitments(said.commitments)
                return Coin(client.open_coin(self._current().state, told))
            case Neighbourhood():
                return self._share(said)
            case Inbox():
                return self._mask(said)
            case Announced():
                return self._confirm(said)
            case Confirmed():
                return self._unmask(said)
            case Done():
                self._end(said.round)
                return said
            case Abandoned():
                self._end(said.round)
                return None
            case Refused():
                raise PeerVisibleError(f"{self.name}: the server refuses: {said.reason}")
        raise SecrecyError(f"{self.name}: {type(said).__name__} is no question of a round")

    def _begin(self, said: RoundOffer) -> ClientKeys:
        self._round = None
        self._offers += 1
        if self._offers > MOST_OFFERS:
            raise SecrecyError(
                f"{self.name}: {self._offers} rounds were begun and none opened; a server that "
                "draws neighbours until they suit it is left"
            )
        task, given = self.task, self._given
        if task is None or given is None:
            raise SecrecyError(f"{self.name}: a round was offered that nobody asked for")
        said.tile.check(task)
        if self.name not in said.clients or len(set(said.clients)) != len(said.clients):
            raise SecrecyError(
                f"{self.name}: the clients of a round must be different ones, this one among them"
            )
        if len(said.clients) < self._policy.fewest:
            raise ThresholdMissed(
                f"{self.name}: a round of {len(said.clients)} clients, at least "
                f"{self._policy.fewest} must take part; nothing is sent"
            )
        if len(said.clients) > task.most_clients:
            raise SecrecyError(
                f"{self.name}: a round of {len(said.clients)} clients, at most "
                f"{task.most_clients} fit into the ring"
            )
        numbers = given.digest
        self._opened.check_offer(self.name, self._policy, said.tile, said.clients, numbers)
        plan = NeighbourPlan(len(said.clients), said.degree, said.threshold)
        check_secrecy(plan)
        keys = {self.name: self._key.public}
        job, clients = job_of(self._aggregation, said.round), tuple(said.clients)
        terms = Terms(job, clients, plan, keys, task.ring, said.tile.length)
        state = client.ClientState(self.name, terms, self._key)
        self._round = _Round(said.round, said.tile, given, numbers, keys, state)
        return ClientKeys(client.advertise(state))

    def _share(self, said: Neighbourhood) -> Shares:
        now = self._current()
        for ticket in said.tickets:
            if ticket.name == self.name and ticket != self._ticket:
                raise SecrecyError(f"{self.name}: another key came under this client's name")
            if self._tickets.get(ticket.name) != ticket:
                check_ticket(ticket, self._aggregation, self._authority)
                self._tickets[ticket.name] = ticket
            now.keys[ticket.name] = ticket.key
        unknown = sorted(said.roster.openings.keys() - now.keys.keys())
        if unknown:
            raise SecrecyError(f"{self.name}: coins of {unknown[:5]}, who showed no tickets")
        return Shares(client.share(now.state, said.roster))

    def _mask(self, said: Inbox) -> Array:
        """Mask the vector; once it leaves, others can open a sum with it."""
        now = self._current()
        values = now.given.products(now.tile, now.state.terms.ring)
        masked = client.mask(now.state, said.shares, values)
        now.expected = self._opened.expect(now.tile, now.state.terms.clients, now.numbers)
        return masked

    def _confirm(self, said: Announced) -> Codes:
        now = self._current()
        now.repeated = self._opened.check(
            self.name, self._policy, now.tile, said.clients, now.numbers
        )
        codes = client.confirm(now.state, Survivors(said.clients))
        now.survivors = said.clients
        return Codes(codes)

    def _unmask(self, said: Confirmed) -> UnmaskingAnswer:
        """Note the round as opened, on disk, before the shares that open it leave."""
        now = self._current()
        silent = sorted(now.state.survivors - {self.name} - said.codes.codes.keys())
        if now.repeated and silent:
            raise SecrecyError(
                f"{self.name}: an earlier round had the same clients, and {silent[:5]} have not "
                "confirmed this one; their numbers may have changed, so nothing is opened"
            )
        revealed = client.unmask(now.state, said.codes)
        expected = now.state.terms.clients if now.expected else None
        self._opened.add(now.tile, now.survivors, now.numbers, expected)
        self._offers = 0
        return UnmaskingAnswer(revealed)

    def _current(self) -> _Round:
        if self._round is None:
            raise SecrecyError(f"{self.name}: a question about a round that is not under way here")
        return self._round

    def _end(self, reference: str) -> None:
        if self._round is not None and self._round.reference == reference:
            self._round = None
