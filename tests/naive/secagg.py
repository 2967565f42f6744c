"""Secure aggregation without security: the sum itself, and pads written out in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
