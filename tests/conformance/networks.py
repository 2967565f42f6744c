"""Network meshes inside one process: real sockets on loopback, real TLS, one end per thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tests.ports import free_port
from vertikal.mesh.network import NetworkMesh
from vertikal.mesh.packets.packet_mesh import CAPACITY, Timing
from vertikal.secure.keys.credentials import Credentials
from vertikal.secure.keys.identity import Certificate, Identity


@cache
def identity(name: str) -> Identity:
    return Identity.create(name)


def certificates(names: Sequence[str]) -> dict[str, Certificate]:
    return {name: identity(name).certificate for name in names}


def credentials(name: str, names: Sequence[str]) -> Credentials:
    return Credentials(identity(name), certificates(names))


def star_of(names: Sequence[str], listening: Sequence[str] = ()) -> dict[str, str | None]:
    """The first party listens on loopback, or those that are named."""
    chosen = listening or names[:1]
    return {name: f"127.0.0.1:{free_port()}" if name in chosen else None for name in names}


def end(name: str, addresses: Mapping[str, str | None], **options: Any) -> NetworkMesh:
    options = {"job": "job", "version": "1", "deadline": 20.0, **options}
    return NetworkMesh(name, addresses, credentials(name, tuple(addresses)), **options)


def network(
    parties: Sequence[str],
    deadline: float,
    capacity: int = CAPACITY,
    listening: Sequence[str] = (),
) -> tuple[dict[str, NetworkMesh], Any]:
    """Connected ends: the first party listens, the others dial, and those speak through it."""
    addresses = star_of(tuple(parties), listening)
    ends = {
        name: end(name, addresses, deadline=deadline, capacity=capacity, timing=Timing(0.5))
        for name in parties
    }
    for one in ends.values():
        one.connect(20.0)

    def cleanup() -> None:
        for one in ends.values():
            one.stop(0.0)

    return ends, cleanup


def direct_network(
    parties: Sequence[str], deadline: float, capacity: int = CAPACITY
) -> tuple[dict[str, NetworkMesh], Any]:
    """Connected ends of which all listen: every pair has a link of its own."""
    return network(parties, deadline, capacity, tuple(parties))
