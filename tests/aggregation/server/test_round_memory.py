"""Memory of a round: the sum, and a fixed number of bytes for each client."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import tracemalloc
from dataclasses import fields, is_dataclass

import msgspec
import numpy as np
import pytest

from tests.aggregation.hall import Hall
from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.device_folder import ServerAddress, sign_for
from vertikal.aggregation.messages import HEAD, Challenge, packed, unpacked_down, unpacked_up
from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.participant import Participant
from vertikal.aggregation.server import round_run
from vertikal.aggregation.server.connection import ClientConnection
from vertikal.aggregation.server.round_run import Deadlines, RoundRun
from vertikal.aggregation.task import Task, Tile
from vertikal.aggregation.tls import client_context
from vertikal.errors import DiskFull
from vertikal.secure.secagg.client_keys import SigningKey

ROWS = 120
TASK = Task(kind="columns", rows=ROWS, largest=1)
TILE = Tile(0, ROWS, 0, ROWS)
TILE_BYTES = ROWS * (ROWS + 1) // 2 * TASK.ring.dtype.itemsize
PER_CLIENT = 4_000
"""Bytes for each client: its name, keys, ticket and commitments."""
FIXED = 20_000


def held(thing, known: set[int]) -> int:
    """Count the bytes of this and of all that it refers to, but for connections and code."""
    if id(thing) in known or isinstance(thing, type | Seat) or callable(thing):
        return 0
    known.add(id(thing))
    size = sys.getsizeof(thing)
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    elif isinstance(thing, msgspec.Struct):
        parts = [getattr(thing, name) for name in thing.__struct_fields__]
    elif is_dataclass(thing):
        parts = [getattr(thing, one.name) for one in fields(thing)]
    elif type(thing).__module__.startswith("vertikal."):
        parts = list(vars(thing).values())
    else:
        parts = []
    return size + sum(held(part, known) for part in parts)


class Seat:
    """A connection without a network, whose client answers when everybody has been asked."""

    def __init__(self, table: Table, one: Participant, ticket) -> None:
        self.table, self.one, self.ticket = table, one, ticket
        self.open, self.fault = True, ""

    async def ask(self, frame, kind, size, seconds, slots):
        async with slots:
            self.table.sending += 1
            raw = frame()
            self.table.most_sending = max(self.table.most_sending, self.table.sending)
            await asyncio.sleep(0)
            self.table.sending -= 1
        answer = self.one.answer(unpacked_down(raw[HEAD:]))
        del raw
        await asyncio.sleep(0)
        self.table.measure()
        if isinstance(kind, type):
            return unpacked_up(packed(answer)[HEAD:])
        kind.write(answer.tobytes())
        await asyncio.sleep(0)
        return kind


class Table:
    """Clients of a round, and what it held at most."""

    def __init__(self, clients: int, folder) -> None:
        authority = SigningKey.fresh()
        address = ServerAddress("hall", "127.0.0.1:1", "sha256:me", authority.public)
        self.sending = self.most_sending = self.most_held = self.asked = 0
        seats = {}
        for number in range(clients):
            key, name = SigningKey.fresh(), f"c{number:03d}"
            ticket = sign_for(authority, address, name, key.public)
            policy = RoundPolicy(fewest=2, difference=1)
            one = Participant(ticket, key, authority.public, policy, OpenedRounds())
            one.greet(Challenge(1, "hall", bytes(32)), "hall", "sha256:me")
            one.task = TASK
            one.give(Contribution(np.ones(ROWS, int), TASK))
            seats[name] = Seat(self, one, ticket)
        self.clients = clients
        self.run = RoundRun(
            "hall",
            TASK,
            TILE,
            seats,
            dropping=0.15,
            deadlines=Deadlines(60.0, 60.0),
            uploads=3,
            fewest=2,
            folder=folder,
        )

    def measure(self) -> None:
        self.asked += 1
        if self.asked % 7 == 0:
            self.most_held = max(self.most_held, held(self.run, set()))

    def play(self) -> np.ndarray:
        return asyncio.run(self.run.run(lambda survivors: None)).total


@pytest.mark.parametrize("clients", [10, 40])
def test_a_round_holds_one_tile_and_no_more_for_a_client_with_more_neighbours(tmp_path, clients):
    """Forty clients have four times as many neighbours each as ten."""
    table = Table(clients, tmp_path)
    assert (table.play() == clients).all()
    assert TILE_BYTES < table.most_held < TILE_BYTES + PER_CLIENT * clients + FIXED
    assert not list(tmp_path.iterdir())


def test_a_full_disk_ends_the_round_for_everybody(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    table = Table(10, tmp_path)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DiskFull):
        table.play()
    assert table.run.progress.answered == 0


def test_no_more_questions_are_made_than_are_being_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(round_run, "SENDING", 4)
    table = Table(12, tmp_path)
    table.play()
    assert table.most_sending == 4


class Deaf:
    """A stream that takes nothing until it is told to."""

    def __init__(self) -> None:
        self.transport, self.reads, self.pieces = self, asyncio.Event(), []

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 1

    def write(self, piece: bytes) -> None:
        self.pieces.append(piece)

    async def drain(self) -> None:
        await self.reads.wait()

    def abort(self) -> None: ...


def connection_over(stream: Deaf) -> ClientConnection:
    key = SigningKey.fresh()
    address = ServerAddress("hall", "127.0.0.1:1", "sha256:me", key.public)
    return ClientConnection(sign_for(key, address, "ada", key.public), None, stream, None)


async def end(tasks: list[asyncio.Task]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_a_question_is_made_once_others_have_been_read():
    """Clients that do not read keep the others' questions from being made."""

    async def scenario() -> None:
        slots, made = asyncio.Semaphore(2), []

        def frame(number: int) -> bytes:
            made.append(number)
            return bytes(50_000)

        streams = [Deaf() for _ in range(5)]
        tasks = []
        for number, stream in enumerate(streams):
            one = connection_over(stream)
            asked = one.ask(lambda n=number: frame(n), Challenge, 99, 20.0, slots)
            tasks.append(asyncio.create_task(asked))
        await asyncio.sleep(0.01)
        assert made == [0, 1]
        # A piece is handed over once the one before it has been taken.
        assert [len(stream.pieces) for stream in streams] == [1, 1, 0, 0, 0]
        streams[1].reads.set()
        await asyncio.sleep(0.01)
        assert made == [0, 1, 2]
        assert sum(map(len, streams[1].pieces)) == 50_000
        await end(tasks)

    asyncio.run(scenario())


def test_pieces_of_two_messages_do_not_mix():
    async def scenario() -> None:
        stream, slots = Deaf(), asyncio.Semaphore(1)
        one = connection_over(stream)
        asked = one.ask(lambda: b"q" * 50_000, Challenge, 99, 20.0, slots)
        tasks = [asyncio.create_task(asked), asyncio.create_task(one.tell(b"t" * 20_000))]
        await asyncio.sleep(0.01)
        stream.reads.set()
        await asyncio.sleep(0.01)
        assert b"".join(stream.pieces) == b"q" * 50_000 + b"t" * 20_000
        await end(tasks)

    asyncio.run(scenario())


def test_an_idle_connection_costs_less_than_what_asyncio_reads_tls_into(tmp_path):
    """Both ends are in this process, and together have less than one end had: 256 KiB."""
    hall, count = Hall.build(tmp_path), 20

    async def scenario() -> int:
        async with hall.serving() as server:

            async def greeted() -> asyncio.StreamWriter:
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", server.port, ssl=client_context()
                )
                await reader.readexactly(HEAD)
                return writer

            writers = [await greeted()]  # what is made once
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            writers += [await greeted() for _ in range(count)]
            held = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            for writer in writers:
                writer.transport.abort()
            return held

    assert asyncio.run(scenario()) < count * 256 * 1024
