"""One round at the server: the stages of `secure.secagg`, each asked of all clients at once.

Whoever misses a deadline, breaks off or sends something that cannot be used has dropped out. What
one client does wrong costs that client its place, and nobody else; the threshold of the plan
decides whether the others can finish.

In memory are the sum, of one tile, and keys and names of the clients. What clients write to one
another lies on disk, in files without names, as do vectors until they are whole; questions are made
as they are sent.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
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
from vertikal.aggregation.server.letters_on_disk import LettersOnDisk
from vertikal.aggregation.task import Task, Tile
from vertikal.errors import SecrecyError, ThresholdMissed, VertikalError
from vertikal.files import nameless_file
from vertikal.secure.secagg import server
from vertikal.secure.secagg.client import check_advertisement, check_openings
from vertikal.secure.secagg.neighbours import Neighbours, plan_neighbours
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
    Terms,
)

Array = npt.NDArray[Any]

PER_NEIGHBOUR = 256
"""Bytes that an answer has for each neighbour at most: a name, a share or two, and their frame."""
SENDING = 64
"""Questions that are made and sent at a time."""


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
        folder: Path,
    ) -> None:
        self._aggregation = aggregation
        self._task = task
        self._there = dict(connections)
        self._dropping = dropping
        self._deadlines = deadlines
        self._uploads = uploads
        self._fewest = fewest
        self._folder = folder
        self._files = ExitStack()
        self._sending = asyncio.Semaphore(SENDING)
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
        with self._files:
            openings = await self._begin()
            state = self._current()
            server.draw_graph(state, openings)
            await self._share(openings)
            await self._mask()
            survivors = server.survivors(state)
            announce(tuple(survivors.clients))
            await self._confirm(survivors.clients)
            await self._unmask()
            total = await asyncio.to_thread(server.open_total, state)
            return RoundSum(total, tuple(survivors.clients))

    def _make_letters(self, graph: Neighbours, size: int) -> LettersOnDisk:
        letters = LettersOnDisk(graph, size, self._folder)
        self._files.callback(letters.close)
        return letters

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
            state = self._state = server.ServerState(terms, make_letters=self._make_letters)
            offer = packed(
                RoundOffer(self.progress.reference, tile, list(names), plan.degree, plan.threshold)
            )
            said = await self._stage(
                ADVERTISE, names, _same(offer), ClientKeys, SMALL, self._usable_keys()
            )
            self._enough(len(said))
            fixed = server.collect_keys(state, said)
            coins = packed(Coins(fixed.commitments))
            openings = await self._stage(
                OPEN_COINS, said, _same(coins), Coin, SMALL, self._usable_coin
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

    async def _share(self, names: Iterable[str]) -> None:
        state = self._current()

        def question(name: str) -> bytes:
            roster = server.roster(state, name)
            near = {said.client for said in roster.advertisements} | roster.openings.keys()
            tickets = [self._there[peer].ticket for peer in sorted(near)]
            return packed(Neighbourhood(roster, tickets))

        def usable(name: str, came: Shares) -> None:
            server.take_shares(state, name, came.shares)

        await self._stage(SHARE, names, question, Shares, self._size(), usable)
        self._enough(len(state.shared))
        server.end_sharing(state)

    async def _mask(self) -> None:
        """Take the masked vectors, a few at a time, so that no more of them are on the disk."""
        state = self._current()
        ring, length = state.terms.ring, state.terms.length
        self._enter(MASK)
        slots = asyncio.Semaphore(self._uploads)
        clock = asyncio.get_running_loop().time
        end = clock() + self._deadlines.uploads

        async def upload(name: str) -> None:
            async with slots:
                left = min(end - clock(), self._deadlines.stage)
                if left <= 0:
                    self._drop(name, "no time was left for its vector")
                    return
                with nameless_file(self._folder) as file:
                    size = length * ring.dtype.itemsize
                    frame = partial(self._inbox, name)
                    if await self._there[name].ask(frame, file, size, left, self._sending) is None:
                        self._missed(name)
                        return
                    values = np.memmap(file, ring.dtype.newbyteorder("<"), "r")
                    server.add_masked(state, name, values)
                self.progress.answered += 1

        await _all_of(upload(name) for name in sorted(state.shared))

    def _inbox(self, name: str) -> bytes:
        return packed(Inbox(server.inbox(self._current(), name)))

    async def _confirm(self, survivors: list[str]) -> None:
        state = self._current()

        def usable(name: str, came: Codes) -> None:
            server.take_codes(state, name, came.said)

        told = packed(Announced(survivors))
        names = [name for name in survivors if self._there[name].open]
        await self._stage(CONFIRM, names, _same(told), Codes, self._size(), usable)
        server.end_confirming(state)

    async def _unmask(self) -> None:
        state = self._current()

        def question(name: str) -> bytes:
            return packed(Confirmed(server.codes_for(state, name)))

        def usable(name: str, came: UnmaskingAnswer) -> None:
            server.take_answer(state, name, came.revealed)

        names = sorted(state.confirmed)
        await self._stage(UNMASK, names, question, UnmaskingAnswer, self._size(), usable)

    def _size(self) -> int:
        """Bytes of an answer that has one part for each neighbour."""
        return SMALL + PER_NEIGHBOUR * self._current().terms.plan.degree

    async def _stage(
        self,
        stage: str,
        names: Iterable[str],
        question: Callable[[str], bytes],
        kind: type[Any],
        size: int,
        usable: Callable[[str, Any], Any],
    ) -> dict[str, Any]:
        """Ask everybody at once; whose answer ``usable`` refuses has dropped out."""
        self._enter(stage)
        answers: dict[str, Any] = {}

        async def one(name: str) -> None:
            came = await self._there[name].ask(
                partial(question, name), kind, size, self._deadlines.stage, self._sending
            )
            if came is None:
                self._missed(name)
                return
            try:
                answers[name] = usable(name, came)
                self.progress.answered += 1
            except SecrecyError as error:
                self._drop(name, str(error))

        await _all_of(one(name) for name in names)
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


async def _all_of(parts: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all of them; if one fails, as where the disk is full, end the others first."""
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
    except* VertikalError as errors:
        raise errors.exceptions[0] from None


def _same(frame: bytes) -> Callable[[str], bytes]:
    """The same question for everybody."""
    return lambda _: frame


def _reference() -> str:
    return secrets.token_hex(16)
