"""The list of meshes. A new transport adds one line to `MESHES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import pytest

from tests.conformance.networks import direct_network, network
from tests.conformance.worlds import mpi_in_threads
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
]

every_mesh = pytest.mark.parametrize(
    "factory", [pytest.param(factory, id=name) for name, factory in MESHES]
)
every_mesh_often = pytest.mark.parametrize(
    "factory",
    [
        # A link for each pair, dozens of times: nothing that one relay does not show as well.
        pytest.param(
            factory, id=name, marks=[pytest.mark.slow] if factory is direct_network else []
        )
        for name, factory in MESHES
    ],
)


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
