"""Opened rounds: whose sums a server may know already, and which sum it must not learn as well.

Server and client keep such a list each, and both ask it before a sum is opened: the server so that
no work is lost, the client because it trusts no server. A list survives a restart; what may have
been opened counts as opened. So a client notes a round before its masked vector leaves, when all
that it knows of the survivors is that they are among the clients that were offered, and again when
it knows them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

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
    """One round: its tile, digests of its clients' names and of the own numbers.

    ``exact``: its sum is over these clients; else over some of them, and which is not known.
    """

    tile: Tile
    clients: list[bytes]
    numbers: bytes
    exact: bool = True


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rounds: list[OpenedRound]
    format: int = FORMAT


class _Noted(NamedTuple):
    tile: Tile
    clients: frozenset[bytes]
    numbers: bytes
    exact: bool


class OpenedRounds:
    """The rounds that may have been opened, in memory and, with a ``file``, on disk."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._rounds: list[_Noted] = []
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
                self._rounds.append(
                    _Noted(one.tile, frozenset(one.clients), one.numbers, one.exact)
                )

    def __len__(self) -> int:
        return len(self._rounds)

    def check_offer(
        self, who: str, policy: RoundPolicy, tile: Tile, clients: Collection[str], numbers: bytes
    ) -> None:
        """Refuse to send changed numbers where an earlier sum could be repeated with them.

        The difference of both sums would be the change alone. Others open a sum without this
        client's help once its vector is there, so it must not leave at all unless enough clients
        are offered that were not in the earlier sum.
        """
        here = _digests(tuple(clients))
        for earlier in self._changed(tile, numbers):
            repeated = earlier.clients <= here or not earlier.exact
            if repeated and len(here - earlier.clients) < policy.difference:
                raise SecrecyError(
                    f"{who}: the numbers here have changed since an earlier round, and "
                    f"{len(here - earlier.clients)} of the clients offered were not in it, at "
                    f"least {policy.difference} must be new; the difference would show the change, "
                    "so nothing is sent"
                )

    def check(
        self, who: str, policy: RoundPolicy, tile: Tile, clients: Collection[str], numbers: bytes
    ) -> bool:
        """Refuse a sum over too few clients, or one that can be subtracted from an earlier one.

        ``numbers`` is the digest of what this client gives. Over the same clients a second sum
        shows who has changed its numbers since; a client that has refuses. True is returned for
        such a sum: it may be opened only if everybody agrees. Sums have something to subtract if
        their tiles share an entry: a server may cut the kernel anew.
        """
        if len(clients) < policy.fewest:
            raise ThresholdMissed(
                f"{who}: a sum over {len(clients)} clients, at least {policy.fewest} must be in it"
            )
        here = _digests(tuple(clients))
        earlier = {one.clients for one in self._rounds if one.exact and one.tile.overlaps(tile)}
        for them in earlier:
            between = len(here ^ them)
            if 0 < between < policy.difference:
                raise SecrecyError(
                    f"{who}: this round and an earlier one differ by {between} clients, whose "
                    f"numbers would follow; they must be the same or differ by {policy.difference}"
                )
        for one in self._changed(tile, numbers):
            perhaps = not one.exact and len(here - one.clients) < policy.difference
            if one.clients == here or perhaps:
                raise SecrecyError(
                    f"{who}: an earlier round had the same clients, or may have had, and the "
                    "numbers here have changed since; the difference would show the change"
                )
        different = earlier | {here}
        people = len(here.union(*different))
        if too_many(len(different), people):
            raise SecrecyError(
                f"{who}: {len(different)} different sums over {people} clients would tell single "
                f"clients' numbers; at most {max(1, people // 4)} are allowed"
            )
        return here in earlier

    def _changed(self, tile: Tile, numbers: bytes) -> list[_Noted]:
        """List earlier rounds to which this client gave other numbers."""
        return [one for one in self._rounds if one.numbers != numbers and one.tile.overlaps(tile)]

    def expect(self, tile: Tile, clients: Collection[str], numbers: bytes) -> bool:
        """Note that a sum over some of these clients may be opened; False if that is known."""
        return self._add(_Noted(tile, _digests(tuple(clients)), numbers, False))

    def add(
        self,
        tile: Tile,
        clients: Collection[str],
        numbers: bytes,
        expected: Collection[str] | None = None,
    ) -> None:
        """Note a round before it can be opened, and wait until the disk has it.

        It takes the place of the one that was ``expected`` over some of those clients.
        """
        if expected is not None:
            one = _Noted(tile, _digests(tuple(expected)), numbers, False)
            self._rounds = [other for other in self._rounds if other != one]
        self._add(_Noted(tile, _digests(tuple(clients)), numbers, True))

    def _add(self, found: _Noted) -> bool:
        if found in self._rounds:
            return False
        self._rounds.append(found)
        if self._file is not None:
            kept = [
                OpenedRound(one.tile, sorted(one.clients), one.numbers, one.exact)
                for one in self._rounds
            ]
            write_whole(self._file, msgspec.msgpack.encode(_List(kept)))
        return True


@lru_cache(maxsize=8)
def _digests(clients: tuple[str, ...]) -> frozenset[bytes]:
    """Digest the names of a round once for all checks of it."""
    return frozenset(hashlib.sha256(name.encode()).digest()[:16] for name in clients)
