"""What each MPI rank executes: ``mpiexec -n q python -m tests.end_to_end.ranks``.

The checks are those of `tests/conformance`, written for one process per party: every dtype and
shape, order, tags, collectives along every tree, deadlines, and failure.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from vertikal.errors import DeadlineExceeded, PeerStopped
from vertikal.mesh import wire
from vertikal.mesh.collectives import SHAPES, broadcast, reduce
from vertikal.mesh.interface import Mesh
from vertikal.mesh.mpi import MpiMesh, MpiWorld
from vertikal.mesh.packet_mesh import CAPACITY, Timing

SIZES = [(), (0,), (1,), (3, 0), (2, 3, 4), (70_000,), (3 << 20,)]


def all_to_all(mesh: Mesh) -> None:
    for dtype in wire.DTYPES:
        for shape in SIZES[:5]:
            sent = np.ones(shape, dtype)
            for peer in mesh.peers:
                mesh.send(peer, "x", sent)
            for peer in mesh.peers:
                came = mesh.recv_array(peer, "x", dtype, shape)
                assert came.tobytes() == sent.tobytes()


def large(mesh: Mesh) -> None:
    for shape in SIZES[5:]:
        sent = np.arange(shape[0], dtype=np.uint64)
        ring = (*mesh.parties, mesh.parties[0])
        after = ring[mesh.parties.index(mesh.me) + 1]
        before = mesh.parties[mesh.parties.index(mesh.me) - 1]
        mesh.send(after, "large", sent)
        assert np.array_equal(mesh.recv(before, "large"), sent)


def order_and_tags(mesh: Mesh) -> None:
    first = mesh.parties[0]
    if mesh.me == first:
        for peer in reversed(mesh.peers):
            for tag in ("y", "x"):
                assert [mesh.recv(peer, tag)["i"] for _ in range(50)] == list(range(50))
    else:
        for i in range(50):
            mesh.send(first, "x", {"i": i})
            mesh.send(first, "y", {"i": i})


def collectives(mesh: Mesh) -> None:
    for number, shape in enumerate(SHAPES):
        for turn in range(len(mesh.parties)):
            order = (*mesh.parties[turn:], *mesh.parties[:turn])
            node = SHAPES[shape](order)
            mine = np.full(5, 200 + mesh.parties.index(mesh.me), np.uint8)
            total = reduce(mesh, mine, node, f"sum {number}")
            news = broadcast(mesh, total, node, f"news {number}")
            expected = sum(200 + i for i in range(len(order))) % 256
            assert np.asarray(news).tolist() == [expected] * 5


def deadline(mesh: Mesh) -> None:
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match="'never'"):
        mesh.recv(mesh.peers[0], "never", 0.3)
    assert 0.3 <= time.monotonic() - began < 5.0


def failure(mesh: Mesh) -> None:
    last = mesh.parties[-1]
    # Nobody fails while another still checks its deadline.
    node = SHAPES["tree"](mesh.parties)
    broadcast(mesh, reduce(mesh, np.zeros(1, np.uint8), node, "barrier"), node, "barrier")
    if mesh.me == last:
        mesh.fail("ValueError: column 'age' has a NaN")
        return
    with pytest.raises(PeerStopped, match="column 'age' has a NaN"):
        mesh.recv(last, "never", 20.0)


CHECKS: list[Callable[[Mesh], None]] = [
    all_to_all,
    large,
    order_and_tags,
    collectives,
    deadline,
    failure,
]


def main() -> None:
    world = MpiWorld()
    names = tuple(f"party{i}" for i in range(world.size))
    mesh = MpiMesh(
        names, world, job="j", version="1", deadline=60.0, capacity=CAPACITY, timing=Timing(0.5)
    )
    for check in CHECKS:
        check(mesh)
        if world.rank == 0:
            sys.stdout.write(f"passed {check.__name__}\n")
            sys.stdout.flush()
    mesh.stop(5.0)


if __name__ == "__main__":
    main()
