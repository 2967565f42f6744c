"""The status of a peer and its description, for errors and for the live table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from dataclasses import dataclass

from vertikal.errors import MeshError, PeerStopped
from vertikal.mesh.packets.envelope import WaitReport
from vertikal.mesh.packets.pair import Pair


@dataclass(frozen=True)
class Wait:
    """One wait of a thread of this party: the peer, the thing, and the time it began."""

    peer: str
    what: str
    since: float


@dataclass(frozen=True)
class PeerStatus:
    """All that this party knows of one peer.

    ``link`` is one of "not yet", "up", "broken", "silent", "closed", "failed"; ``quiet`` counts the
    seconds since its last sign of life, or since this party began to wait for it.
    """

    link: str
    quiet: float
    doing: str
    waits: tuple[WaitReport, ...]

    def describe(self, name: str) -> str:
        """Describe it: 'shop was last heard of 0.4 s ago, doing phases'."""
        doing = f", doing {self.doing}" if self.doing else ""
        if self.link == "not yet":
            return f"{name} has not connected in {self.quiet:.1f} s"
        if self.link == "broken":
            return f"{name} is not connected, last heard of {self.quiet:.1f} s ago{doing}"
        if self.link == "silent":
            return (
                f"{name} is connected but silent for {self.quiet:.1f} s (frozen, or its machine "
                f"is){doing}"
            )
        if self.link in ("closed", "failed"):
            return f"{name} has {'ended' if self.link == 'closed' else 'failed'}"
        return f"{name} was last heard of {self.quiet:.1f} s ago{doing}"


def status_of(pair: Pair, now: float, silence: float) -> PeerStatus:
    """Find the status of the peer of this pair."""
    quiet = now - (pair.since if pair.heard is None else pair.heard)
    if pair.ended:
        link = pair.ended
    elif not pair.ready:
        link = "not yet"
    elif pair.lost is not None:
        link = "broken"
    else:
        link = "silent" if quiet > silence else "up"
    theirs = pair.theirs
    return PeerStatus(link, quiet, theirs.doing if theirs else "", theirs.waits if theirs else ())


def chain(me: str, wait: Wait, statuses: Mapping[str, PeerStatus]) -> str:
    """Follow waits from this party's own: 'a waits for b (…); b waits for c (…); c was …'.

    The waits of a party that is silent or cut off are old news, and not followed.
    """
    links = [f"{me} waits for {wait.peer} ({wait.what})"]
    name, seen = wait.peer, {me}
    while name not in seen and statuses[name].link == "up" and statuses[name].waits:
        seen.add(name)
        theirs = statuses[name].waits[0]
        links.append(
            f"{name} waits for {theirs.peer} ({theirs.what}, {theirs.seconds:.1f} s when last seen)"
        )
        if theirs.peer not in statuses:
            return "; ".join(links)
        name = theirs.peer
    return "; ".join([*links, statuses[name].describe(name)])


def failure_of(
    me: str,
    wait: Wait,
    pairs: Mapping[str, Pair],
    patience: float,
    statuses: Mapping[str, PeerStatus],
    excused: Set[str] = frozenset(),
) -> MeshError | None:
    """Find the reason for which this wait can only fail; None while it may still end well."""
    now = time.monotonic()
    waited = f"for {now - wait.since:.1f} s"
    for name, pair in pairs.items():
        if name in excused and name != wait.peer:
            continue
        if pair.fault is not None:
            return pair.fault
        if pair.ended == "failed" and pair.theirs and (name != wait.peer or pair.all_here):
            return PeerStopped.of(
                name,
                f"{me}: {name} stopped ({pair.theirs.reason}) while {me} waited for {wait.what} "
                f"from {wait.peer}, {waited} so far",
            )
    pair = pairs[wait.peer]
    if pair.ended and pair.all_here:
        return PeerStopped.of(
            wait.peer,
            f"{me}: {wait.peer} has ended without sending {wait.what}; {me} waited for it {waited}",
        )
    if pair.lost is not None and now - pair.lost > patience:
        return PeerStopped.of(
            wait.peer,
            f"{me}: the connection to {wait.peer} broke {now - pair.lost:.1f} s ago and did not "
            f"come back while {me} waited for {wait.what} {waited}; {chain(me, wait, statuses)}",
        )
    return None
