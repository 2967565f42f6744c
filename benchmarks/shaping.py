"""Links as slow as real ones: a proxy process on loopback that delays bytes and limits their rate.

Each party has one access link. What it sends takes its turn on the way out of it, and on the way
into the receiver's; a thousand parallel streams to one party get no more than its rate.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

PIECE = 1 << 15
QUEUE = 128
"""Pieces that lie in a link at a time; then its sender waits."""


@dataclass(frozen=True)
class Profile:
    """``delay`` in seconds one way; ``rate`` in bytes per second each way, None without limit."""

    name: str
    delay: float = 0.0
    rate: float | None = None


class Access:
    """One way of one party's access link: when it is free again."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._free = 0.0

    def through(self, size: int, start: float) -> float:
        """Return when the last byte of ``size`` has passed, if the first is there at ``start``."""
        if self._rate is None:
            return start
        self._free = max(self._free, start) + size / self._rate
        return self._free


class Links:
    """The proxy process; `open` gives a port that leads to another port over a shaped link."""

    def __init__(self, profile: Profile) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_run, args=(there, profile), daemon=True)
        self._process.start()

    def open(self, dialling: str, listening: str, port: int) -> int:
        """A port by which ``dialling`` reaches ``listening``, who really is at ``port``."""
        self._pipe.send((dialling, listening, port))
        return int(self._pipe.recv())

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


def _run(pipe: Connection, profile: Profile) -> None:
    asyncio.run(_Shaper(profile).serve(pipe))


class _Shaper:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._access: dict[tuple[str, str], Access] = {}
        self._kept: list[Any] = []

    async def serve(self, pipe: Connection) -> None:
        loop = asyncio.get_running_loop()
        while True:
            dialling, listening, port = await loop.run_in_executor(None, pipe.recv)

            async def accept(
                reader: asyncio.StreamReader,
                writer: asyncio.StreamWriter,
                ends: tuple[str, str, int] = (dialling, listening, port),
            ) -> None:
                await self._join(reader, writer, *ends)

            server = await asyncio.start_server(accept, "127.0.0.1", 0)
            self._kept.append(server)
            pipe.send(server.sockets[0].getsockname()[1])

    async def _join(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        dialling: str,
        listening: str,
        port: int,
    ) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # nobody is there, or no longer
            writer.close()
            return
        await asyncio.gather(
            self._pump(reader, back, dialling, listening),
            self._pump(there, writer, listening, dialling),
        )

    def _way(self, party: str, direction: str) -> Access:
        return self._access.setdefault((party, direction), Access(self._profile.rate))

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        sender: str,
        receiver: str,
    ) -> None:
        loop = asyncio.get_running_loop()
        out, into = self._way(sender, "out"), self._way(receiver, "in")
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(QUEUE)

        async def write() -> None:
            while (entry := await queue.get())[1]:
                due, piece = entry
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                writer.write(piece)
                await writer.drain()
            writer.close()

        writing = asyncio.create_task(write())
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                sent = out.through(len(piece), loop.time())
                due = into.through(len(piece), sent + self._profile.delay)
                await queue.put((due, piece))
        await queue.put((0.0, b""))
        with suppress(OSError):
            await writing
