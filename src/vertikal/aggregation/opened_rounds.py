"""Opened rounds: whose sums a server may know already, and which sum it must not learn as well.

Server and client keep such a list each, and both ask it before a sum is opened: the server so that
no work is lost, the client because it trusts no server. A list survives a restart; what may have
been opened counts as opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import msgspec

from vertikal.aggregation.task import Tile
from vertikal.errors import InputError, SecrecyError, ThresholdMissed
from vertikal.files import write_whole
from vertikal.records import check_format, from_msgpack
from vertikal.secure.secagg.differences import FEWEST_BETWEEN, too_many

FEWEST = 8
"""Clients that a sum must have, unless a policy says otherwise."""
FORMAT = 1


class RoundPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Sums that may be opened: of at least ``fewest`` clients, ``difference`` between two of them.

    Two rounds are of the same clients, or differ by so many.
    """

    fewest: Annotated[int, msgspec.Meta(ge=2)] = FEWEST
    difference: Annotated[int, msgspec.Meta(ge=1)] = FEWEST_BETWEEN


class OpenedRound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One round: its tile, digests of its clients' names and of the own numbers."""

    tile: Tile
    clients: list[bytes]
    numbers: bytes


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rounds: list[OpenedRound]
    format: int = FORMAT


class OpenedRounds:
    """The rounds that may have been opened, in memory and, with a ``file``, on disk."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._rounds: list[tuple[Tile, frozenset[bytes], bytes]] = []
        if file is not None and file.exists():
            raw = file.read_bytes()
            check_format(raw, FORMAT, f"list of opened rounds {file.name!r}", packed=True)
            try:
                kept = from_msgpack(raw, _List).rounds
            except (msgspec.DecodeError, ValueError) as error:
                raise InputError(
                    f"list of opened rounds {file.name!r} cannot be read: {error}; without it "
                    "nobody knows which sums may be opened, so nothing is"
                ) from None
            for one in kept:
                self._rounds.append((one.tile, frozenset(one.clients), one.numbers))

    def __len__(self) -> int:
        return len(self._rounds)

    def check(
        self, who: str, policy: RoundPolicy, tile: Tile, clients: Collection[str], numbers: bytes
    ) -> None:
        """Refuse a sum over too few clients, or one that can be subtracted from an earlier one.

        ``numbers`` is the digest of what this client gives. Over the same clients a second sum
        shows who has changed its numbers since; a client that has refuses. Sums have something to
        subtract if their tiles share an entry: a server may cut the kernel anew.
        """
        if len(clients) < policy.fewest:
            raise ThresholdMissed(
                f"{who}: a sum over {len(clients)} clients, at least {policy.fewest} must be in it"
            )
        here = frozenset(map(_digest, clients))
        earlier = [(them, given) for at, them, given in self._rounds if at.overlaps(tile)]
        for them, given in earlier:
            between = len(here ^ them)
            if 0 < between < policy.difference:
                raise SecrecyError(
                    f"{who}: this round and an earlier one differ by {between} clients, whose "
                    f"numbers would follow; they must be the same or differ by {policy.difference}"
                )
            if between == 0 and given != numbers:
                raise SecrecyError(
                    f"{who}: an earlier round had the same clients, and the numbers here have "
                    "changed since; the difference would show the change"
                )
        different = {them for them, _ in earlier} | {here}
        people = len(here.union(*different))
        if too_many(len(different), people):
            raise SecrecyError(
                f"{who}: {len(different)} different sums over {people} clients would tell single "
                f"clients' numbers; at most {max(1, people // 4)} are allowed"
            )

    def add(self, tile: Tile, clients: Collection[str], numbers: bytes) -> None:
        """Note a round before it can be opened, and wait until the disk has it."""
        found = tile, frozenset(map(_digest, clients)), numbers
        if found in self._rounds:
            return
        self._rounds.append(found)
        if self._file is not None:
            kept = [OpenedRound(at, sorted(them), given) for at, them, given in self._rounds]
            write_whole(self._file, msgspec.msgpack.encode(_List(kept)))


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()[:16]
