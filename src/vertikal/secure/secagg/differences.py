"""Differences between rounds: a server that has two sums also has the one minus the other.

If two rounds differ by one client, their difference is that client's vector. So rounds are of the
same clients, or differ by many; and there are fewer of them than single clients follow from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

FEWEST_BETWEEN = 16
"""Clients that two rounds must differ by, or be the same."""


def may_be_subtracted(
    sets: Iterable[frozenset[Any]], clients: int, fewest: int = FEWEST_BETWEEN
) -> bool:
    """True if sums over these sets of clients say something about few of them.

    Either by the difference of two rounds, or by so many rounds that single clients follow from
    them.
    """
    different = set(sets)
    near = any(0 < len(a ^ b) < fewest for a in different for b in different)
    return near or too_many(len(different), clients)


def too_many(rounds: int, clients: int) -> bool:
    """True if so many different sums over ``clients`` are too many equations about each of them."""
    return rounds > max(1, clients // 4)
