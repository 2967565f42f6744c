"""Coins: the randomness that decides who is whose neighbour, which nobody knew before.

If names alone decided it, 70 of 1,000 clients could choose theirs so that they surround a victim,
hold all shares of its secrets, and open its vector together with the server. So

    1  every client draws a coin of 32 bytes and sends its digest, signed with its keys;
    2  the server tells everybody all digests. From these a hash chooses a committee. Each of its
       members checks that its own digest is among them, shows its coin, and signs it together with
       the digest of all digests;
    3  everybody checks that all members signed the digests that it was told, and that the coins fit
       them. The seed of the graph is a hash of these coins.

An honest member shows its coin once, after names and digests are fixed, so the seed is uniform to
all who had to choose theirs before: one honest member is enough. Everybody asks for the digests of
more than half of the clients. Of these at most a fifth are corrupt where a tenth of all are, and
all 40 members are so with chance 2^-92; who speaks last can try digests until they are, and 2^40
tries leave 2^-52.

Knowing all other coins, who speaks last is left with one choice: to withhold its own. Then there is
no seed, and the job begins anew without it, under another name and with fresh coins. So N withheld
coins are N more draws of the graph, and cost log2(N) of the 40 bits that `plan_neighbours` reckons
with. The server sees who withholds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from vertikal.secure.keys.prg import encode_texts

COIN_BYTES = 32
COMMITTEE = 40
"""Members of a committee; all clients where there are no more."""


def coin_commitment(client: str, coin: bytes) -> bytes:
    """Digest that fixes a client's coin without showing it."""
    return hashlib.sha256(encode_texts("coin", client) + coin).digest()


def digest_of_commitments(job: str, commitments: Mapping[str, bytes]) -> bytes:
    """Digest of the commitments of all clients that have advertised."""
    listed = msgspec.msgpack.encode(sorted(commitments.items()))
    return hashlib.sha256(encode_texts("coins", job) + listed).digest()


def choose_committee(digest: bytes, clients: Iterable[str]) -> tuple[str, ...]:
    """Choose by a hash who shows its coin; nobody could know it before all commitments are made.

    Each draw is 16 bytes mod the number of clients that are left.
    """
    left = sorted(clients)
    stream = hashlib.shake_256(digest + encode_texts("committee")).digest(16 * COMMITTEE)
    members = []
    for draw in range(min(COMMITTEE, len(left))):
        number = int.from_bytes(stream[16 * draw : 16 * draw + 16], "big")
        members.append(left.pop(number % len(left)))
    return tuple(members)


def seed_of(digest: bytes, coins: Mapping[str, bytes]) -> bytes:
    """Derive the seed of the graph from the coins of the committee."""
    listed = msgspec.msgpack.encode(sorted(coins.items()))
    return hashlib.sha256(digest + encode_texts("seed") + listed).digest()
