"""Secure aggregation without security: the sum itself, and pads written out in full."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from tests.naive.phases import stream


def plain_sum(values: Mapping[str, np.ndarray], who: Iterable[str]) -> np.ndarray:
    """The sum over ``who`` in Python's integers, reduced at the end."""
    names = list(who)
    first = values[names[0]]
    total = [sum(int(values[name][i]) for name in names) for i in range(len(first))]
    return np.array([t % 256**first.itemsize for t in total], first.dtype)


def pad(key: bytes, length: int, itemsize: int) -> list[int]:
    """Stream 0 of a key as whole numbers."""
    raw = stream(key, 0, length * itemsize)
    return [int.from_bytes(raw[i * itemsize : (i + 1) * itemsize], "little") for i in range(length)]


def interpolate_at_zero(shares: Mapping[int, int], prime: int) -> int:
    """Lagrange's formula in the field, one fraction at a time."""
    total = 0
    for x, y in shares.items():
        term = y
        for other in shares:
            if other != x:
                term = term * other * pow(other - x, -1, prime) % prime
        total += term
    return total % prime


def circle_neighbours(
    job: str, commitments: Mapping[str, bytes], coins: Mapping[str, bytes], degree: int
) -> dict[str, set[str]]:
    """Write out the neighbours of each client from the coins that the committee has shown."""

    def text(*words: str) -> bytes:
        return b"".join(len(w.encode()).to_bytes(4, "big") + w.encode() for w in words)

    def listed(by_name: Mapping[str, bytes]) -> bytes:
        return msgspec.msgpack.encode([[name, by_name[name]] for name in sorted(by_name)])

    digest = hashlib.sha256(text("coins", job) + listed(commitments)).digest()
    seed = hashlib.sha256(digest + text("seed") + listed(coins)).digest()
    circle = sorted(
        commitments, key=lambda name: hashlib.sha256(seed + text("circle", name)).digest()
    )
    twice, half = circle * 3, degree // 2
    return {
        name: set(twice[len(circle) + i - half : len(circle) + i + half + 1]) - {name}
        for i, name in enumerate(circle)
    }
