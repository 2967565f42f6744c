"""An MPI world inside one process: ranks as threads, packets in queues. For the mesh above it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

from vertikal.mesh.mpi import MpiMesh
from vertikal.mesh.packets.packet_mesh import CAPACITY, Timing


class QueueWorld:
    def __init__(self, rank: int, queues: Sequence[SimpleQueue[tuple[int, bytes]]]) -> None:
        self.rank, self.size, self._queues = rank, len(queues), queues
        self._moving = threading.Lock()

    def post(self, rank: int, packet: bytes) -> Any:
        with self._moving:
            self._queues[rank].put((self.rank, bytes(packet)))
        return rank

    def done(self, request: Any) -> bool:
        return True

    def poll(self) -> tuple[int, bytes] | None:
        with self._moving:
            try:
                return self._queues[self.rank].get_nowait()
            except Empty:
                return None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let nothing in or out, as a process that is stopped."""
        with self._moving:
            yield


def queue_worlds(count: int) -> list[QueueWorld]:
    """All ranks of one world."""
    queues: list[SimpleQueue[tuple[int, bytes]]] = [SimpleQueue() for _ in range(count)]
    return [QueueWorld(rank, queues) for rank in range(count)]


def mpi_in_threads(
    parties: Sequence[str],
    deadline: float,
    capacity: int = CAPACITY,
    worlds: Sequence[QueueWorld] = (),
) -> tuple[dict[str, MpiMesh], Any]:
    ends = {
        name: MpiMesh(
            tuple(parties),
            world,
            job="job",
            version="1",
            deadline=deadline,
            capacity=capacity,
            timing=Timing(0.5),
        )
        for name, world in zip(parties, worlds or queue_worlds(len(parties)), strict=True)
    }

    def cleanup() -> None:
        for end in ends.values():
            end.stop(0.0)

    return ends, cleanup
