"""The server's end of one client's connection: one question at a time, each with a deadline.

Bytes that nobody asked for, of another kind or beyond the size that the question allows end the
connection before they are read; so do an answer that is no message and one that comes too late. A
client whose connection has ended has dropped out of its round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vertikal.aggregation.enrolment import Ticket
from vertikal.aggregation.messages import HEAD, RECORD, SMALL, VECTOR, Up, read_head, unpacked_up
from vertikal.errors import VertikalError, WireError
from vertikal.node.rate_limit import RateLimit

CHUNK = 1 << 18
"""Bytes that are read at a time."""
REQUEST = 30.0
"""Seconds that a request may take from its first byte to its last, and its answer to be read."""


@dataclass(frozen=True)
class _Question:
    kind: type[Any] | None  # None for a bare vector
    size: int  # at most; of a vector exactly
    answer: asyncio.Future[Any]


class ClientConnection:
    """One client that has shown who it is."""

    def __init__(
        self,
        ticket: Ticket,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        quota: RateLimit,
    ) -> None:
        self.ticket = ticket
        self.name = ticket.name
        self.received = 0
        self.sent = 0
        self.open = True
        self.in_round = False
        self.fault = ""
        """The reason for which this side ended the connection."""
        self._reader = reader
        self._writer = writer
        self._quota = quota
        self._question: _Question | None = None

    async def listen(self, request: Callable[[Up], Awaitable[None]]) -> None:
        """Read until the connection ends: answers to questions, and outside rounds requests."""
        try:
            while True:
                await self._take(request)
        except (asyncio.IncompleteReadError, OSError):
            pass
        except TimeoutError:
            self.fault = "a request took too long"
        except VertikalError as error:
            self.fault = str(error)
        finally:
            self.close()

    async def _take(self, request: Callable[[Up], Awaitable[None]]) -> None:
        size, kind = read_head(await self._reader.readexactly(HEAD))
        question = self._question
        if question is None and self.in_round:
            raise WireError("bytes that nobody asked for")
        wanted = VECTOR if question is not None and question.kind is None else RECORD
        limit = SMALL if question is None else question.size
        if kind != wanted or size > limit or (wanted == VECTOR and size != limit):
            raise WireError(f"{size} bytes of kind {kind}, at most {limit} of {wanted} were due")
        if not self._quota.take(HEAD + size):
            raise WireError("more bytes than its quota")
        if question is None:
            async with asyncio.timeout(REQUEST):
                said = unpacked_up(bytes(await self._body(size)))
                await request(said)
            return
        body = await self._body(size)
        answer: Any = body if question.kind is None else unpacked_up(bytes(body))
        if question.kind is not None and not isinstance(answer, question.kind):
            raise WireError(f"{type(answer).__name__}, not {question.kind.__name__}, which was due")
        self._question = None
        if not question.answer.done():
            question.answer.set_result(answer)

    async def _body(self, size: int) -> bytearray:
        body = bytearray(size)
        place = 0
        while place < size:
            part = await self._reader.read(min(CHUNK, size - place))
            if not part:
                raise asyncio.IncompleteReadError(b"", size)
            body[place : place + len(part)] = part
            place += len(part)
        self.received += HEAD + size
        return body

    async def tell(self, frame: bytes, seconds: float = REQUEST) -> None:
        """Send what wants no answer; a client that does not read it in time has dropped out."""
        try:
            async with asyncio.timeout(seconds):
                await self._send(frame)
        except (TimeoutError, OSError):
            self.close()

    async def ask(
        self, frame: bytes, kind: type[Any] | None, size: int, seconds: float
    ) -> Any | None:
        """Ask and wait for the answer; None if the client has dropped out."""
        if not self.open:
            return None
        question = _Question(kind, size, asyncio.get_running_loop().create_future())
        self._question = question
        try:
            async with asyncio.timeout(seconds):
                await self._send(frame)
                return await question.answer
        except TimeoutError:
            self.fault = f"no answer within {seconds:g} s"
        except OSError:
            pass
        self.close()
        return None

    async def _send(self, frame: bytes) -> None:
        self.sent += len(frame)
        self._writer.write(frame)
        await self._writer.drain()

    def close(self) -> None:
        """End the connection at once; whoever waits for an answer hears of it."""
        self.open = False
        question, self._question = self._question, None
        if question is not None and not question.answer.done():
            question.answer.set_exception(ConnectionError(f"{self.name} is gone"))
            question.answer.exception()  # it may be that nobody waits any more
        with suppress(OSError, RuntimeError):
            self._writer.transport.abort()
