"""The server's end of one client's connection: one question at a time, each with a deadline.

Bytes that nobody asked for, of another kind or beyond the size that the question allows end the
connection before they are read; so do an answer that is no message and one that comes too late. A
client whose connection has ended has dropped out of its round.

Whatever a client does, its connection holds little: a question is made when it can be sent, and
goes out piece by piece as the client reads, and a vector is written to a file as it comes.
"""

from __future__ import annotations

import asyncio
from asyncio import sslproto
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from vertikal.aggregation.enrolment import Ticket
from vertikal.aggregation.messages import HEAD, RECORD, SMALL, VECTOR, Up, read_head, unpacked_up
from vertikal.errors import VertikalError, WireError
from vertikal.files import disk_error
from vertikal.node.rate_limit import RateLimit

PIECE = 1 << 14
"""Bytes that are sent at a time. No more than this waits for a client that does not read, beside
the 64 KiB that asyncio hands to the system ahead."""
READ_LIMIT = 1 << 15
"""Bytes that are read at a time; twice as many may wait to be taken."""
REQUEST = 30.0
"""Seconds that a request may take from its first byte to its last, and its answer to be read."""


def bound_read_buffers() -> None:
    """Let TLS connections of this process, from now on, have read buffers of ``READ_LIMIT`` bytes.

    asyncio gives each of them 256 KiB, idle or not, and has no option for it: thousands of clients
    that wait would be a gigabyte.
    """
    sslproto.SSLProtocol.max_size = READ_LIMIT


@dataclass(frozen=True)
class _Question:
    kind: type[Any] | IO[bytes]  # the message that is due, or the file for a bare vector
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
        writer.transport.set_write_buffer_limits(
            high=1
        )  # drain: until nothing waits for the system
        self._quota = quota
        self._question: _Question | None = None
        self._sending = asyncio.Lock()  # pieces of two frames must not mix

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
        file = None if question is None or isinstance(question.kind, type) else question.kind
        wanted = RECORD if file is None else VECTOR
        limit = SMALL if question is None else question.size
        if kind != wanted or size > limit or (wanted == VECTOR and size != limit):
            raise WireError(f"{size} bytes of kind {kind}, at most {limit} of {wanted} were due")
        if not self._quota.take(HEAD + size):
            raise WireError("more bytes than its quota")
        if question is None:
            async with asyncio.timeout(REQUEST):
                said = unpacked_up(await self._body(size))
                await request(said)
            return
        answer: Any = file
        if file is not None:
            await self._write_body(size, file)
        elif isinstance(question.kind, type):
            answer = unpacked_up(await self._body(size))
            if not isinstance(answer, question.kind):
                raise WireError(
                    f"{type(answer).__name__}, not {question.kind.__name__}, which was due"
                )
        self._question = None
        if not question.answer.done():
            question.answer.set_result(answer)

    async def _body(self, size: int) -> bytes:
        body = await self._reader.readexactly(size)
        self.received += HEAD + size
        return body

    async def _write_body(self, size: int, file: IO[bytes]) -> None:
        """Write a body to a file as it comes."""
        left = size
        while left:
            part = await self._reader.read(min(READ_LIMIT, left))
            if not part:
                raise asyncio.IncompleteReadError(b"", size)
            left -= len(part)
            try:
                file.write(part)
            except OSError as error:
                raise disk_error(Path("vector"), error) from None
        self.received += HEAD + size

    async def tell(self, frame: bytes, seconds: float = REQUEST) -> None:
        """Send what wants no answer; a client that does not read it in time has dropped out."""
        try:
            async with self._sending, asyncio.timeout(seconds):
                await self._send(frame)
        except (TimeoutError, OSError):
            self.close()

    async def ask(
        self,
        frame: Callable[[], bytes],
        kind: type[Any] | IO[bytes],
        size: int,
        seconds: float,
        slots: asyncio.Semaphore,
    ) -> Any | None:
        """Ask and wait for the answer; None if the client has dropped out.

        ``frame`` is made once one of ``slots`` is free, and the slot is kept until the client has
        read all of it but the last pieces. ``kind`` is the message that is due, or the file that
        a vector of ``size`` bytes is written to.
        """
        async with slots:
            if not self.open:
                return None
            question = _Question(kind, size, asyncio.get_running_loop().create_future())
            self._question = question
            try:
                async with self._sending, asyncio.timeout(min(seconds, REQUEST)):
                    await self._send(frame())
            except TimeoutError:
                self.fault = f"a question was not read within {min(seconds, REQUEST):g} s"
                self.close()
            except OSError:
                self.close()
        try:
            async with asyncio.timeout(seconds):
                return await question.answer
        except TimeoutError:
            self.fault = f"no answer within {seconds:g} s"
        except OSError:
            pass
        self.close()
        return None

    async def _send(self, frame: bytes) -> None:
        self.sent += len(frame)
        for start in range(0, len(frame), PIECE):
            self._writer.write(frame[start : start + PIECE])
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
