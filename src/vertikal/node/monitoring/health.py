"""The health of a service, for whoever restarts it or calls its owner."""

from __future__ import annotations

from typing import Any, Protocol

from vertikal.version import __version__

LATE = 15.0
"""Seconds without a beat after which the service counts as stuck; it beats every second."""


class Watched(Protocol):
    """A service, as far as its health goes."""

    @property
    def me(self) -> str: ...

    @property
    def beat_age(self) -> float: ...

    @property
    def disk_full(self) -> bool: ...

    def peers_up(self) -> dict[str, bool]: ...


def health_of(service: Watched) -> tuple[bool, dict[str, Any]]:
    """Tell whether the service is well, with the reasons if it is not.

    Peers that are away are named, and are no fault of this service: a restart would not bring them.
    """
    faults = []
    if service.beat_age > LATE:
        faults.append(f"no beat for {service.beat_age:.0f} s")
    if service.disk_full:
        faults.append("the disk of the store is full")
    peers = {name: "connected" if up else "away" for name, up in service.peers_up().items()}
    return not faults, {
        "status": "failing" if faults else "ok",
        "party": service.me,
        "version": __version__,
        "faults": faults,
        "peers": peers,
    }
