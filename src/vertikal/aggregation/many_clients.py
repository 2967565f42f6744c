"""Many clients in one process, each a task of one event loop: for load tests and simulations.

Each has its own connection, key and list of opened rounds, as a `Device` has; only the thread is
shared. ``act`` may change what a client would answer, or raise, and then it hangs up: so faults are
tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.device_folder import ServerAddress
from vertikal.aggregation.enrolment import Ticket
from vertikal.aggregation.messages import (
    HEAD,
    RECORD,
    VECTOR,
    Announced,
    Challenge,
    Done,
    Down,
    Ready,
    Welcome,
    head,
    packed,
    read_head,
    unpacked_down,
)
from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.participant import Participant
from vertikal.aggregation.task import Task
from vertikal.aggregation.tls import check_server, client_context
from vertikal.errors import WireError
from vertikal.mesh.wire import MAX_RECORD
from vertikal.secure.secagg.client_keys import SigningKey

Array = npt.NDArray[Any]

_TLS = client_context()
RETRIES = (1.0, 3.0, 9.0)
"""Seconds before a client dials again."""
HANDSHAKE = 300.0
"""Seconds that TLS may take: all clients of a process share a thread."""


Act = Callable[[str, bytes], Iterable[bytes]]
"""Turns the stage and the frame of an answer into what is sent."""


def faithfully(stage: str, frame: bytes) -> Iterable[bytes]:
    """Send what the protocol says."""
    return [frame]


@dataclass
class TaskClient:
    """One client as a task; ``opened`` lasts over connections."""

    server: ServerAddress
    ticket: Ticket
    key: SigningKey
    policy: RoundPolicy
    opened: OpenedRounds
    sent: int = 0
    received: int = 0
    pause: float = 0.0
    """Seconds before each answer, of a slow client."""
    survivors: tuple[str, ...] = ()
    """Clients whose numbers are in the last sum, as the server announced them."""

    async def take_part(
        self, numbers: Callable[[Task], Contribution], act: Act = faithfully, seconds: float = 600.0
    ) -> int:
        """Connect, take part in one round, and return over how many clients its sum is.

        A server that too many dial at once hangs up on some; they dial again, later and later.
        """
        async with asyncio.timeout(seconds):
            reader, writer = await self._connected()
            try:
                shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                check_server(shown, self.server.fingerprint)
                return await self._round(reader, writer, numbers, act)
            finally:
                writer.transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self.server.address.rpartition(":")
        for wait in (*RETRIES, None):
            try:
                return await asyncio.open_connection(
                    host, int(port), ssl=_TLS, ssl_handshake_timeout=HANDSHAKE
                )
            except OSError:
                if wait is None:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError("not reached")

    async def _round(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        numbers: Callable[[Task], Contribution],
        act: Act,
    ) -> int:
        server = self.server
        participant = Participant(self.ticket, self.key, server.authority, self.policy, self.opened)
        challenge = await self._receive(reader)
        if not isinstance(challenge, Challenge):
            raise WireError(f"{type(challenge).__name__}, not Challenge, came first")
        greeting = participant.greet(challenge, server.aggregation, server.fingerprint)
        await self._send(writer, packed(greeting))
        welcome = await self._receive(reader)
        if not isinstance(welcome, Welcome):
            raise WireError(f"{type(welcome).__name__}, not Welcome, came: {welcome}")
        participant.task = welcome.task
        participant.give(numbers(welcome.task))
        await self._send(writer, packed(Ready()))
        while True:
            said = await self._receive(reader)
            if isinstance(said, Announced):
                self.survivors = tuple(said.clients)
            reply = participant.answer(said)
            if isinstance(reply, Done):
                return reply.clients
            if reply is None:
                continue
            if isinstance(reply, np.ndarray):
                frame = head(reply.nbytes, VECTOR) + reply.tobytes()
            else:
                frame = packed(reply)
            await asyncio.sleep(self.pause)
            for part in act(participant.stage, frame):
                await self._send(writer, part)

    async def _receive(self, reader: asyncio.StreamReader) -> Down:
        size, kind = read_head(await reader.readexactly(HEAD))
        if kind != RECORD or size > MAX_RECORD:
            raise WireError(f"a message of {size} bytes, at most {MAX_RECORD} are allowed")
        body = await reader.readexactly(size)
        self.received += HEAD + size
        return unpacked_down(body)

    async def _send(self, writer: asyncio.StreamWriter, frame: bytes) -> None:
        self.sent += len(frame)
        writer.write(frame)
        await writer.drain()
