"""The MPI mesh: one party per rank, for clusters and for the papers' own set-up.

All calls to MPI are made by one thread, which sends what lies ready, looks for what has arrived and
sleeps a little when there is neither, so that more ranks than cores do not starve each other. MPI
itself says which rank sent what. Nothing is encrypted.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Protocol

from vertikal.errors import InputError, WireError
from vertikal.mesh.interface import DEADLINE
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.envelope import Ready
from vertikal.mesh.packets.packet_mesh import CAPACITY, PacketMesh, Timing
from vertikal.mesh.packets.security import NoSecurity

_TAG = 7
_NAPS = (2e-5, 1e-3)
"""Seconds to sleep when nothing is to be done: at first, and at most."""
_DRAIN = 2.0


class World(Protocol):
    """The part of MPI that the mesh uses."""

    rank: int
    size: int

    def post(self, rank: int, packet: bytes) -> Any:
        """Begin to send; `done` is asked about the result."""

    def done(self, request: Any) -> bool: ...

    def poll(self) -> tuple[int, bytes] | None:
        """Take the next packet that has arrived, with its sender's rank; None if there is none."""


class MpiWorld:
    """A communicator of mpi4py, all ranks of the program by default."""

    def __init__(self, communicator: Any = None) -> None:
        try:
            from mpi4py import MPI
        except ModuleNotFoundError as missing:
            raise InputError("the MPI mesh needs mpi4py: pip install 'vertikal[mpi]'") from missing
        self._mpi = MPI
        # A communicator of our own: no message of anybody else can come in between.
        self._comm = (communicator or MPI.COMM_WORLD).Dup()
        self.rank, self.size = int(self._comm.rank), int(self._comm.size)

    def post(self, rank: int, packet: bytes) -> Any:
        return self._comm.Isend([packet, self._mpi.BYTE], rank, _TAG), packet

    def done(self, request: Any) -> bool:
        return bool(request[0].Test())

    def poll(self) -> tuple[int, bytes] | None:
        status = self._mpi.Status()
        if not self._comm.Iprobe(self._mpi.ANY_SOURCE, _TAG, status):
            return None
        packet = bytearray(status.Get_count(self._mpi.BYTE))
        self._comm.Recv([packet, self._mpi.BYTE], status.source, _TAG)
        return int(status.source), bytes(packet)


class MpiMesh(PacketMesh):
    """One rank's end; party number i of ``parties`` is rank i."""

    def __init__(
        self,
        parties: tuple[str, ...],
        world: World,
        *,
        job: str,
        version: str,
        deadline: float = DEADLINE,
        capacity: int = CAPACITY,
        timing: Timing = Timing(),  # noqa: B008 (frozen)
    ) -> None:
        if world.size != len(parties):
            raise InputError.of(
                "mpiexec -n", f"{len(parties)}, one rank for each party", world.size
            )
        super().__init__(
            parties[world.rank],
            parties,
            deadline,
            security=NoSecurity(),
            job=job,
            version=version,
            capacity=capacity,
            timing=timing,
        )
        self._world = world
        self._urgent: deque[tuple[int, Ready]] = deque()
        self._data: deque[tuple[int, Ready]] = deque()
        self._wake = threading.Event()
        self._heart.start()
        self._mover = threading.Thread(target=self._move, name=f"{self.me} moves", daemon=True)
        self._mover.start()
        for peer in self.peers:
            self._greet(peer)

    def _post(self, peer: str, packet: Ready, *, urgent: bool) -> None:
        queue = self._urgent if urgent else self._data
        queue.append((self._pairs[peer].place, packet))
        self._wake.set()

    def _move(self) -> None:
        pending: list[Any] = []
        nap, until = _NAPS[0], None
        while until is None or (pending and time.monotonic() < until):
            self._wake.clear()
            if until is None and self._stopped.is_set():
                until = time.monotonic() + _DRAIN
            busy = False
            while queue := self._urgent or self._data:
                rank, packet = queue.popleft()
                pending.append(self._world.post(rank, envelope.whole(packet)))
                busy = True
            pending = [request for request in pending if not self._world.done(request)]
            if (came := self._world.poll()) is not None:
                self._arrived(*came)
                busy = True
            nap = _NAPS[0] if busy else min(_NAPS[1], 2 * nap)
            if not busy:
                self._wake.wait(nap)

    def _arrived(self, rank: int, raw: bytes) -> None:
        peer = self.parties[rank]
        try:
            packet = envelope.unpack(raw, len(self.parties))
            if packet.sender != rank or self.parties[packet.receiver] != self.me:
                raise WireError(f"a packet from {packet.sender} to {packet.receiver}")
        except WireError as error:
            self.blame(peer, WireError(f"{self.me}: {peer} sent {error}"))
            return
        self._accept(packet)

    def _release(self) -> None:
        self._wake.set()
        self._mover.join(2 * _DRAIN)
