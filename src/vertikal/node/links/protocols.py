"""The protocol that services of neighbouring releases speak with one another.

A protocol is a number: it stands for all that parties send in beats, proposals, runs and
predictions, and for how they compute it. A release that changes any of it speaks the next number,
and that of the release before as well.

Each beat says which numbers its sender speaks. The leader of a job has its run or session speak the
newest number that all its parties know, and says so when it begins. Releases that have none in
common do not run together, and each says which the other has. Beats are read whatever fields a
later release adds to them.
"""

from __future__ import annotations

from collections.abc import Iterable

from vertikal.version import OLDEST_PROTOCOL, PROTOCOL

Spoken = tuple[int, int]
"""The oldest and the newest protocol that somebody speaks."""
OWN: Spoken = (OLDEST_PROTOCOL, PROTOCOL)


def newest_common(spoken: Iterable[Spoken]) -> int | None:
    """Return the newest protocol that all of these speak; None if there is none."""
    oldest, newest = zip(*spoken, strict=True)
    return min(newest) if max(oldest) <= min(newest) else None


def is_spoken(protocol: int) -> bool:
    """Tell if this release speaks a protocol."""
    return OWN[0] <= protocol <= OWN[1]


def in_words(spoken: Spoken) -> str:
    """Write which protocols somebody speaks."""
    oldest, newest = spoken
    return f"protocol {newest}" if oldest == newest else f"protocols {oldest} to {newest}"


def protocol_name(protocol: int) -> str:
    """Name a protocol as parties compare it in a run, in the place of the library's version."""
    return f"protocol {protocol}"
