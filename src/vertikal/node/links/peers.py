"""How the other parties of a federation stand: name, key, address, version and clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from vertikal.errors import VertikalError
from vertikal.node.approval.proposals import AHEAD
from vertikal.node.printable import printable
from vertikal.secure.keys.identity import Certificate
from vertikal.version import __version__

if TYPE_CHECKING:
    from vertikal.node.service import Service

_REMARKABLE = 2.0
"""Seconds between two clocks that are worth a remark."""


def peers(service: Service) -> list[dict[str, Any]]:
    """One record per other party; ``faults`` says what does not fit, in words."""
    return [_peer(service, name) for name in service.links.presence()]


def _peer(service: Service, name: str) -> dict[str, Any]:
    member = service.home.federation.member(name)
    presence = service.links.presence()[name]
    beat = service.council.beats.get(name)
    faults = []
    try:
        Certificate.parse(member.certificate.strip().encode()).check_time()
    except VertikalError as error:
        faults.append(f"key: {error}")
    if not presence.up:
        since = f" for {time.monotonic() - presence.changed:.0f} s" if presence.changed else ""
        faults.append(f"address: {name} is not connected{since}. {presence.fault}".rstrip())
    version, clock = "", "?"
    if presence.up and beat is not None:
        version = beat[0].version
        clock = _clock(beat[2])
        if version != __version__:
            faults.append(f"version: {name} runs {version}, this party {__version__}")
        if abs(beat[2]) > AHEAD:
            faults.append(f"clock: that of {name} is {clock}; its jobs are refused")
    elif presence.up:
        faults.append(f"version: {name} has not said anything yet; wait a second")
    return {
        "name": name,
        "fingerprint": member.fingerprint,
        "address": member.listens or "dials",
        "up": presence.up,
        "version": version,
        "clock": clock,
        "faults": [printable(fault) for fault in faults],
    }


def _clock(lead: float) -> str:
    """A clock's lead in words; what is within the time of a message counts as nothing."""
    if abs(lead) < _REMARKABLE:
        return "fits"
    return f"{abs(lead):.0f} s {'ahead' if lead > 0 else 'behind'}"
