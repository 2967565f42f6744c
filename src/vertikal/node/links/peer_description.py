"""The other parties of a federation as an owner sees them: key, address, version, clock, faults."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from vertikal.errors import VertikalError
from vertikal.node.approval.proposals import AHEAD, LATEST
from vertikal.node.config.federation_file import FederationFile, Member
from vertikal.node.links.gossip import LastBeat
from vertikal.node.links.protocols import OWN, in_words, newest_common
from vertikal.node.links.standing_links import Presence
from vertikal.node.printable import printable
from vertikal.secure.keys.identity import Certificate
from vertikal.version import __version__

_REMARKABLE = 2.0
"""Seconds between two clocks from which on the difference is shown."""


def describe_peers(
    federation: FederationFile,
    presence: Mapping[str, Presence],
    beats: Mapping[str, LastBeat],
    not_compared: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Describe each other party by plain values; ``faults`` names all that does not fit.

    ``seconds`` is the time since it connected, or was lost. The owner has compared its key with the
    others' owners but for ``not_compared``.
    """
    return [
        _describe(federation.member(name), presence[name], beats.get(name))
        | {"compared": name not in not_compared}
        for name in presence
    ]


def _describe(member: Member, presence: Presence, last: LastBeat | None) -> dict[str, Any]:
    name = member.name
    faults = []
    try:
        Certificate.parse(member.certificate.strip().encode()).check_time()
    except VertikalError as error:
        faults.append(f"key: {error}")
    if not presence.up:
        since = f" for {time.monotonic() - presence.changed:.0f} s" if presence.changed else ""
        faults.append(f"address: {name} is not connected{since}. {presence.fault}".rstrip())
    version, clock = "", "?"
    if presence.up and last is not None:
        version = last.beat.version
        clock = _clock(last.clock_lead)
        if newest_common([OWN, last.beat.spoken]) is None:
            faults.append(
                f"version: {name} runs {version} ({in_words(last.beat.spoken)}), this party "
                f"{__version__} ({in_words(OWN)}); install the same release, or one next to it"
            )
        if not abs(last.clock_lead) <= AHEAD:
            behind = last.clock_lead < 0
            refused = "it refuses the jobs of this party" if behind else "its jobs are refused"
            faults.append(f"clock: that of {name} is {clock}; {refused}")
    elif presence.up:
        faults.append(f"version: {name} has not said anything yet; wait a second")
    return {
        "name": name,
        "fingerprint": member.fingerprint,
        "address": member.listens or "dials",
        "up": presence.up,
        "seconds": round(time.monotonic() - presence.changed, 1) if presence.changed else None,
        "version": version,
        "clock": clock,
        "faults": [printable(fault) for fault in faults],
    }


def _clock(lead: float) -> str:
    """Say how far a clock is ahead; a difference that a message's way explains counts as none."""
    if abs(lead) < _REMARKABLE:
        return "fits"
    if not abs(lead) < LATEST:
        return "at no date"
    return f"{abs(lead):.0f} s {'ahead' if lead > 0 else 'behind'}"
