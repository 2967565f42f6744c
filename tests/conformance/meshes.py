"""The list of meshes. A new transport adds one line to `MESHES`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import pytest

from tests.conformance.networks import direct_network, network
from tests.conformance.queue_world import mpi_in_threads
from tests.conformance.ranks import MPIEXEC, mpi_ranks
from vertikal.mesh import Mesh, RecordingMesh, Tape, local_meshes
from vertikal.mesh.local import CAPACITY

Ends = Mapping[str, Mesh]
Cleanup = Callable[[], None]


class Factory(Protocol):
    """Connected ends by name, and what takes them down again.

    ``capacity`` bounds the bytes that may lie between two parties before the sender waits.
    """

    def __call__(
        self, parties: Sequence[str], deadline: float, capacity: int = ...
    ) -> tuple[Ends, Cleanup]: ...


def local(
    parties: Sequence[str], deadline: float, capacity: int = CAPACITY
) -> tuple[Ends, Cleanup]:
    ends = local_meshes(parties, deadline, capacity)

    def cleanup() -> None:
        for end in ends.values():
            end.close()

    return ends, cleanup


def recorded_local(
    parties: Sequence[str], deadline: float, capacity: int = CAPACITY
) -> tuple[Ends, Cleanup]:
    ends, cleanup = local(parties, deadline, capacity)
    tape = Tape()
    return {name: RecordingMesh(end, tape) for name, end in ends.items()}, cleanup


MESHES: list[tuple[str, Factory]] = [
    ("local", local),
    ("recorded local", recorded_local),
    ("network", network),
    ("network, all listening", direct_network),
    ("mpi in threads", mpi_in_threads),
    ("mpi ranks", mpi_ranks),
]

without_mpi = pytest.mark.skipif(
    not MPIEXEC.exists() or importlib.util.find_spec("mpi4py") is None,
    reason="no mpi4py, or no mpiexec next to this Python",
)


def _meshes(slow: Sequence[Factory]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "factory",
        [
            pytest.param(
                factory,
                id=name,
                marks=[
                    *([pytest.mark.slow] if factory in slow else []),
                    *([without_mpi] if factory is mpi_ranks else []),
                ],
            )
            for name, factory in MESHES
        ],
    )


# Real ranks are many processes; `end_to_end/test_mpi` has some of it for every day.
every_mesh = _meshes(slow=[mpi_ranks])
# A link for each pair, dozens of times: nothing that one relay does not show as well.
every_mesh_often = _meshes(slow=[mpi_ranks, direct_network])


@contextmanager
def connected(
    factory: Factory, parties: Sequence[str], deadline: float = 20.0, **options: int
) -> Iterator[Ends]:
    """The ends of a mesh, taken down at the end."""
    ends, cleanup = factory(parties, deadline, **options)
    try:
        yield ends
    finally:
        cleanup()


@contextmanager
def taped(parties: Sequence[str], deadline: float = 20.0) -> Iterator[tuple[Ends, Tape]]:
    """Local ends whose every frame lies on one tape."""
    with connected(recorded_local, parties, deadline) as ends:
        first = next(iter(ends.values()))
        assert isinstance(first, RecordingMesh)
        yield ends, first.tape
