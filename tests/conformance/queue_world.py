"""An MPI world inside one process: ranks as threads, packets in queues. For the mesh above it."""

from __future__ import annotations

from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any

from vertikal.mesh.mpi import MpiMesh
from vertikal.mesh.packets.packet_mesh import CAPACITY, Timing


class QueueWorld:
    def __init__(self, rank: int, queues: Sequence[SimpleQueue[tuple[int, bytes]]]) -> None:
        self.rank, self.size, self._queues = rank, len(queues), queues

    def post(self, rank: int, packet: bytes) -> Any:
        self._queues[rank].put((self.rank, bytes(packet)))
        return rank

    def done(self, request: Any) -> bool:
        return True

    def poll(self) -> tuple[int, bytes] | None:
        try:
            return self._queues[self.rank].get_nowait()
        except Empty:
            return None


def mpi_in_threads(
    parties: Sequence[str], deadline: float, capacity: int = CAPACITY
) -> tuple[dict[str, MpiMesh], Any]:
    queues: list[SimpleQueue[tuple[int, bytes]]] = [SimpleQueue() for _ in parties]
    ends = {
        name: MpiMesh(
            tuple(parties),
            QueueWorld(rank, queues),
            job="job",
            version="1",
            deadline=deadline,
            capacity=capacity,
            timing=Timing(0.5),
        )
        for rank, name in enumerate(parties)
    }

    def cleanup() -> None:
        for end in ends.values():
            end.stop(0.0)

    return ends, cleanup
