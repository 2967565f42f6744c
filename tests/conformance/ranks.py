"""Real MPI ranks, driven from the test process, so that the conformance suite runs on them.

`mpiexec` starts one process per rank, once for each number of ranks; each connects back to the
tests over loopback and does what it is told: open a mesh with the first ranks, put, get, close.
A `RankEnd` looks like any other end of a mesh; its frames really travel over MPI.
"""

from __future__ import annotations

import atexit
import io
import os
import secrets
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from vertikal import errors
from vertikal.mesh import Mesh, wire
from vertikal.mesh.packets.packet_mesh import CAPACITY, Timing

ROOT = Path(__file__).parents[2]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
# More ranks than cores must not starve each other; and a container's user is root.
OPTIONS = ("--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SIZES = (2, 4, 8, 16)
START = 240.0
"""Seconds that the ranks have to come up."""


class Line:
    """Messages (msgpack, with their length before them) over one socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rwb")
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        raw = msgspec.msgpack.encode(message)
        with self._lock:
            self._file.write(struct.pack(">Q", len(raw)) + raw)
            self._file.flush()

    def recv(self) -> dict[str, Any] | None:
        """The next message; None when the other side is gone."""
        size = self._file.read(8)
        if len(size) < 8:
            return None
        return msgspec.msgpack.decode(self._file.read(struct.unpack(">Q", size)[0]))


class Rank:
    """One rank, as the tests speak to it; any thread may ask."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._answers: dict[int, SimpleQueue[dict[str, Any]]] = {}
        self._next = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, call: str, **details: Any) -> Any:
        with self._lock:
            number, self._next = self._next, self._next + 1
            answer = self._answers[number] = SimpleQueue()
        self._line.send({"number": number, "call": call, **details})
        message = answer.get(timeout=300.0)
        if "error" in message:
            kind, words = getattr(errors, message["error"]), message["words"]
            raise kind.of(message["peer"], words) if "peer" in message else kind(words)
        return message["result"]

    def _listen(self) -> None:
        while (message := self._line.recv()) is not None:
            self._answers.pop(message["number"]).put(message)


class RankEnd(Mesh):
    """The mesh of one rank."""

    def __init__(self, rank: Rank, me: str, parties: tuple[str, ...], deadline: float) -> None:
        super().__init__(me, parties, deadline)
        self._rank = rank

    def put_frame(self, to: str, frame: wire.Frame) -> None:
        prefix, body = frame.buffers()
        self._rank.ask("put", to=to, frame=prefix + bytes(body))

    def get_frame(self, from_: str, tag: str, timeout: float) -> wire.Frame:
        return wire.read(
            io.BytesIO(self._rank.ask("get", from_=from_, tag=tag, timeout=timeout)).read
        )

    def excuse(self, name: str) -> None:
        super().excuse(name)
        self._rank.ask("excuse", name=name)

    def close(self) -> None:
        self._rank.ask("close")

    def fail(self, reason: str) -> None:
        self._rank.ask("fail", reason=reason)


@cache
def universe(size: int) -> list[Rank]:
    """So many ranks under one mpiexec, until the tests end."""
    token = secrets.token_hex(16)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(START)
        port = listener.getsockname()[1]
        process = subprocess.Popen(
            [
                *(str(MPIEXEC), "-n", str(size), *OPTIONS),
                *(sys.executable, "-m", "tests.conformance.ranks", str(port)),
            ],
            cwd=ROOT,
            env={**os.environ, **AS_ROOT, "RANK_TOKEN": token},
            stdin=subprocess.DEVNULL,
        )
        atexit.register(_end, process)
        found: dict[int, Rank] = {}
        while len(found) < size:
            line = Line(listener.accept()[0])
            hello = line.recv() or {}
            if hello.get("token") == token:
                found[hello["rank"]] = Rank(line)
    return [found[rank] for rank in range(size)]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


def mpi_ranks(
    parties: Sequence[str], deadline: float, capacity: int = CAPACITY
) -> tuple[dict[str, RankEnd], Callable[[], None]]:
    """One party per rank, on the smallest number of ranks that has room for them."""
    names = tuple(parties)
    ranks = universe(next(size for size in SIZES if size >= len(names)))
    together(ranks, "open", parties=names, deadline=deadline, capacity=capacity)
    ends = {
        name: RankEnd(rank, name, names, deadline) for name, rank in zip(names, ranks, strict=False)
    }
    return ends, lambda: together(ranks, "stop")


def together(ranks: Sequence[Rank], call: str, **details: Any) -> None:
    """Ask all ranks the same at the same time: what they do takes all of them."""
    threads = [
        threading.Thread(target=rank.ask, args=(call,), kwargs=details, daemon=True)
        for rank in ranks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240.0)
        assert not thread.is_alive(), f"a rank did not {call} within 240 s"


class Server:
    """Serve as a rank: one request at a time that needs all ranks, others in threads."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self.rank = MPI.COMM_WORLD.rank
        self._mesh: Any = None

    def open(self, parties: Sequence[str], deadline: float, capacity: int) -> None:
        from vertikal.mesh.mpi import MpiMesh, MpiWorld

        mine = self.rank < len(parties)
        part = self._mpi.COMM_WORLD.Split(0 if mine else self._mpi.UNDEFINED)
        if mine:
            self._mesh = MpiMesh(
                tuple(parties),
                MpiWorld(part),
                job="job",
                version="1",
                deadline=deadline,
                capacity=capacity,
                timing=Timing(0.5),
            )
            self._mesh.connect(200.0)

    def stop(self) -> None:
        if self._mesh is not None:
            self._mesh.stop(0.0)
        self._mesh = None

    def put(self, to: str, frame: bytes) -> None:
        self._mesh.put_frame(to, wire.read(io.BytesIO(frame).read))

    def get(self, from_: str, tag: str, timeout: float) -> bytes:
        prefix, body = self._mesh.get_frame(from_, tag, timeout).buffers()
        return prefix + bytes(body)

    def excuse(self, name: str) -> None:
        self._mesh.excuse(name)

    def close(self) -> None:
        self._mesh.close()

    def fail(self, reason: str) -> None:
        self._mesh.fail(reason)


def main() -> None:
    server = Server()
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30.0)
    connection.settimeout(None)  # the tests may be busy elsewhere for minutes
    line = Line(connection)
    line.send({"token": os.environ["RANK_TOKEN"], "rank": server.rank})

    def serve(number: int, call: str, **details: Any) -> None:
        try:
            line.send({"number": number, "result": getattr(server, call)(**details)})
        except errors.VertikalError as error:
            answer = {"number": number, "error": type(error).__name__, "words": str(error)}
            if isinstance(error, errors.PeerStopped):
                answer["peer"] = error.peer
            line.send(answer)

    while (message := line.recv()) is not None:
        if message["call"] in ("open", "stop"):
            serve(**message)
        else:
            threading.Thread(target=serve, kwargs=message, daemon=True).start()
    # The tests are over: whatever MPI still waits for does not matter any more.
    os._exit(0)


if __name__ == "__main__":
    main()
