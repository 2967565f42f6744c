"""One round at the server: the stages of `secure.secagg`, each asked of all clients at once.

Whoever misses a deadline, breaks off or sends something that cannot be used has dropped out. What
one client does wrong costs that client its place, and nobody else; the threshold of the plan
decides whether the others can finish.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.aggregation.enrolment import job_of
from vertikal.aggregation.messages import (
    SMALL,
    Announced,
    ClientKeys,
    Codes,
    Coin,
    Coins,
    Confirmed,
    Inbox,
    Neighbourhood,
    RoundOffer,
    Shares,
    UnmaskingAnswer,
    packed,
)
from vertikal.aggregation.server.connection import ClientConnection
from vertikal.aggregation.task import Task, Tile
from vertikal.errors import SecrecyError, ThresholdMissed
from vertikal.secure.secagg import server
from vertikal.secure.secagg.client import check_advertisement, check_openings
from vertikal.secure.secagg.neighbours import plan_neighbours
from vertikal.secure.secagg.rounds import (
    ADVERTISE,
    CONFIRM,
    MASK,
    OPEN_COINS,
    SERVER,
    SHARE,
    UNMASK,
    Advertisement,
    CoinOpening,
    Confirmations,
    EncryptedShares,
    Revealed,
    Terms,
)
from vertikal.secure.secagg.shamir import SHARE_BYTES

Array = npt.NDArray[Any]

PER_NEIGHBOUR = 256
"""Bytes that an answer has for each neighbour at most: a name, a share or two, and their frame."""
TAG_BYTES = 16
CODE_BYTES = 32


@dataclass(frozen=True)
class Deadlines:
    """Seconds of each stage; ``uploads`` is the time for all masked vectors together."""

    stage: float
    uploads: float


@dataclass
class RoundProgress:
    """Progress of a round, for the status and for the records."""

    reference: str
    tile: Tile
    clients: int
    stage: str = ADVERTISE
    answered: int = 0
    dropped: dict[str, int] = field(default_factory=dict)  # by stage
    attempts: int = 0


@dataclass(frozen=True)
class RoundSum:
    """Sum over the survivors."""

    total: Array
    survivors: tuple[str, ...]


class RoundRun:
    """A round with the connections of those who take part."""

    def __init__(
        self,
        aggregation: str,
        task: Task,
        tile: Tile,
        connections: Mapping[str, ClientConnection],
        *,
        dropping: float,
        deadlines: Deadlines,
        uploads: int,
        fewest: int,
    ) -> None:
        self._aggregation = aggregation
        self._task = task
        self._there = dict(connections)
        self._dropping = dropping
        self._deadlines = deadlines
        self._uploads = uploads
        self._fewest = fewest
        self._state: server.ServerState | None = None
        self.progress = RoundProgress(_reference(), tile, len(self._there))

    @property
    def there(self) -> dict[str, ClientConnection]:
        """The clients that have not dropped out."""
        return {name: one for name, one in self._there.items() if one.open}

    async def run(self, announce: Callable[[tuple[str, ...]], None]) -> RoundSum:
        """Run all stages; ``announce`` hears the survivors before any client does, and may refuse.

        It is called once in a round: from there on the sum may be known, whatever happens.
        """
        openings = await self._begin()
        state = self._current()
        inboxes = await self._share(server.collect_openings(state, openings))
        await self._mask(inboxes)
        survivors = server.survivors(state)
        announce(tuple(survivors.clients))
        codes = await self._confirm(survivors.clients)
        revealed = await self._unmask(codes)
        total = await asyncio.to_thread(server.unmask, state, revealed)
        return RoundSum(total, tuple(survivors.clients))

    async def _begin(self) -> dict[str, CoinOpening]:
        """Collect keys and coins, anew without those who withhold theirs."""
        while True:
            self.progress.attempts += 1
            names = tuple(sorted(self.there))
            self._enough(len(names))
            if self.progress.attempts > 1:
                self.progress.reference = _reference()
            plan = plan_neighbours(len(names), dropping=self._dropping)
            keys = {name: self._there[name].ticket.key for name in names}
            job, tile = job_of(self._aggregation, self.progress.reference), self.progress.tile
            terms = Terms(job, names, plan, keys, self._task.ring, tile.length)
            state = self._state = server.ServerState(terms)
            offer = packed(
                RoundOffer(self.progress.reference, tile, list(names), plan.degree, plan.threshold)
            )
            said = await self._stage(
                ADVERTISE, dict.fromkeys(names, offer), ClientKeys, SMALL, self._usable_keys()
            )
            self._enough(len(said))
            fixed = server.collect_keys(state, said)
            coins = packed(Coins(fixed.commitments))
            openings = await self._stage(
                OPEN_COINS, dict.fromkeys(said, coins), Coin, SMALL, self._usable_coin
            )
            withheld = server.withheld(state, openings)
            if not withheld:
                self._enough(len(openings))
                return openings
            for name in withheld:
                self._drop(name, "withheld its coin")

    def _usable_keys(self) -> Callable[[str, ClientKeys], Advertisement]:
        seen: set[bytes] = set()
        terms = self._current().terms

        def usable(name: str, came: ClientKeys) -> Advertisement:
            said = came.said
            fresh = {said.cipher_key, said.pad_key, said.commitment}
            if said.client != name or len(fresh) < 3 or fresh & seen:
                raise SecrecyError(f"{name}: keys of somebody else")
            check_advertisement(SERVER, terms, said)
            seen.update(fresh)
            return said

        return usable

    def _usable_coin(self, name: str, came: Coin) -> CoinOpening:
        state = self._current()
        if name in state.committee:
            mine = {name: state.committee[name]}
            shown = {name: came.opening}
            check_openings(SERVER, state.terms, state.coins_digest, mine, shown)
        return came.opening

    async def _share(self, rosters: Mapping[str, Any]) -> dict[str, EncryptedShares]:
        state = self._current()
        graph = state.graph
        if graph is None:
            raise SecrecyError("the coins that draw the neighbours are not known")
        questions = {}
        for name, roster in rosters.items():
            near = {said.client for said in roster.advertisements} | roster.openings.keys()
            tickets = [self._there[peer].ticket for peer in sorted(near)]
            questions[name] = packed(Neighbourhood(roster, tickets))

        def usable(name: str, came: Shares) -> EncryptedShares:
            encrypted = came.shares.encrypted
            wanted = {peer for peer in graph.of(name) if peer in state.advertised}
            sizes = {len(one) for one in encrypted.values()}
            if encrypted.keys() != wanted or sizes - {2 * SHARE_BYTES + TAG_BYTES}:
                raise SecrecyError(f"{name}: shares for others than its neighbours")
            return came.shares

        size = SMALL + PER_NEIGHBOUR * state.terms.plan.degree
        shares = await self._stage(SHARE, questions, Shares, size, usable)
        self._enough(len(shares))
        return server.deliver_shares(state, shares)

    async def _mask(self, inboxes: Mapping[str, EncryptedShares]) -> None:
        """Take the masked vectors, a few at a time, so that no more of them are in memory."""
        state = self._current()
        ring, length = state.terms.ring, state.terms.length
        self._enter(MASK)
        slots = asyncio.Semaphore(self._uploads)
        clock = asyncio.get_running_loop().time
        end = clock() + self._deadlines.uploads

        async def upload(name: str) -> None:
            connection = self._there[name]
            async with slots:
                left = min(end - clock(), self._deadlines.stage)
                if left <= 0:
                    self._drop(name, "no time was left for its vector")
                    return
                frame = packed(Inbox(inboxes[name]))
                raw = await connection.ask(frame, None, length * ring.dtype.itemsize, left)
                if raw is None:
                    self._missed(name)
                    return
                values = np.frombuffer(raw, ring.dtype.newbyteorder("<"))
                server.add_masked(state, name, values)
                self.progress.answered += 1

        await asyncio.gather(*(upload(name) for name in inboxes))

    async def _confirm(self, survivors: list[str]) -> dict[str, Confirmations]:
        state = self._current()

        def usable(name: str, came: Codes) -> Confirmations:
            codes = came.said.codes
            if any(len(code) != CODE_BYTES for code in codes.values()):
                raise SecrecyError(f"{name}: codes of another length")
            return came.said

        told = packed(Announced(survivors))
        size = SMALL + PER_NEIGHBOUR * state.terms.plan.degree
        questions = {name: told for name in survivors if self._there[name].open}
        said = await self._stage(CONFIRM, questions, Codes, size, usable)
        return server.collect_confirmations(state, said)

    async def _unmask(self, codes: Mapping[str, Confirmations]) -> dict[str, Revealed]:
        state = self._current()

        def usable(name: str, came: UnmaskingAnswer) -> Revealed:
            given = came.revealed
            server.check_answers(state, {name: given})
            shares = (*given.self_masks.values(), *given.pad_keys.values())
            if any(len(share) != SHARE_BYTES for share in shares):
                raise SecrecyError(f"{name}: shares of another length")
            return given

        questions = {name: packed(Confirmed(said)) for name, said in codes.items()}
        size = SMALL + PER_NEIGHBOUR * state.terms.plan.degree
        return await self._stage(UNMASK, questions, UnmaskingAnswer, size, usable)

    async def _stage(
        self,
        stage: str,
        questions: Mapping[str, bytes],
        kind: type[Any],
        size: int,
        usable: Callable[[str, Any], Any],
    ) -> dict[str, Any]:
        """Ask everybody at once; whose answer ``usable`` refuses has dropped out."""
        self._enter(stage)
        answers: dict[str, Any] = {}

        async def one(name: str, question: bytes) -> None:
            came = await self._there[name].ask(question, kind, size, self._deadlines.stage)
            if came is None:
                self._missed(name)
                return
            try:
                answers[name] = usable(name, came)
                self.progress.answered += 1
            except SecrecyError as error:
                self._drop(name, str(error))

        await asyncio.gather(*(one(name, question) for name, question in questions.items()))
        # In the order of names, not in that of arrival.
        return {name: answers[name] for name in sorted(answers)}

    def _enough(self, left: int) -> None:
        """Give the round up before a vector leaves any client, if its sum would be of too few."""
        if left < self._fewest:
            raise ThresholdMissed(
                f"{self.progress.stage}: {left} clients are left, {self._fewest} must be"
            )

    def _enter(self, stage: str) -> None:
        self.progress.stage, self.progress.answered = stage, 0

    def _drop(self, name: str, reason: str) -> None:
        connection = self._there[name]
        connection.fault = connection.fault or reason
        connection.close()
        self._count(self.progress.stage)

    def _missed(self, name: str) -> None:
        """Note that no answer came, and in which stage."""
        connection = self._there[name]
        if connection.fault:
            connection.fault = f"{self.progress.stage}: {connection.fault}"
        self._count(self.progress.stage)

    def _count(self, stage: str) -> None:
        self.progress.dropped[stage] = self.progress.dropped.get(stage, 0) + 1

    def _current(self) -> server.ServerState:
        if self._state is None:
            raise SecrecyError("no round is under way")
        return self._state


def _reference() -> str:
    return secrets.token_hex(16)
