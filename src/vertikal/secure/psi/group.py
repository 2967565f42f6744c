"""The group in which ids are compared: Curve25519's subgroup of prime order, by libsodium.

`hash_to_points` maps messages to points whose discrete logarithms nobody knows (Elligator 2, as
libsodium's ``crypto_core_ed25519_from_uniform`` does it), and `Exponent.times` multiplies points by
a secret number (X25519). A point is 32 bytes, its u-coordinate (RFC 7748). Multiplications commute,
so r⁻¹·(k·(r·P)) = k·P: that is how one party has a point multiplied by another's secret without
showing it.

A hash used directly as the coordinate would not do: half of all coordinates are not on the curve,
and which half an id falls into survives the multiplication.

libsodium's calls let go of Python's lock, so threads use all cores and no secret has to be handed
to another process.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError, SecrecyError
from vertikal.secure.keys.prg import fresh_key

Array: TypeAlias = npt.NDArray[Any]

POINT_BYTES = 32
ORDER = 2**252 + 27742317777372353535851937790883648493
"""ℓ, the number of points of the subgroup."""

_FIELD = 2**255 - 19
_LOWEST, _HIGHEST = 2**254, 2**255
"""Between these X25519 takes its numbers, all of them multiples of 8."""


def libsodium() -> Any:
    """Import PyNaCl's bindings; InputError where it is not installed."""
    try:
        import nacl.bindings
    except ImportError:
        raise InputError(
            'alignment needs PyNaCl, which is not installed; pip install "vertikal[node]"'
        ) from None
    return nacl.bindings


class CurveThreads:
    """Threads that share the work on a run of points."""

    def __init__(self, pool: ThreadPoolExecutor, count: int) -> None:
        self._pool = pool
        self._count = count

    def map(
        self, function: Callable[[Sequence[bytes]], list[bytes]], items: Sequence[bytes]
    ) -> list[bytes]:
        """Apply ``function`` to all items, a stretch of them in each thread."""
        if not items:
            return []
        step = -(-len(items) // self._count)
        parts = [items[start : start + step] for start in range(0, len(items), step)]
        return [result for part in self._pool.map(function, parts) for result in part]


@contextmanager
def workers(count: int | None = None) -> Iterator[CurveThreads]:
    """Start ``count`` threads, by default one per core that this process may use."""
    count = count or _cores()
    with ThreadPoolExecutor(count, "points") as pool:
        yield CurveThreads(pool, count)


def _cores() -> int:
    """Count the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def hash_to_points(messages: Sequence[bytes], domain: bytes, threads: CurveThreads) -> Array:
    """Hash each message to a point, (n, 32) in all; other domains give unrelated points."""
    sodium = libsodium()
    prefix = hashlib.sha256(domain).digest()

    def some(part: Sequence[bytes]) -> list[bytes]:
        return _coordinates(
            [
                sodium.crypto_core_ed25519_from_uniform(hashlib.sha256(prefix + message).digest())
                for message in part
            ]
        )

    return _array(threads.map(some, messages))


class Exponent:
    """A secret number that points are multiplied by. It cannot be copied, printed or sent."""

    def __init__(self) -> None:
        self._sodium = libsodium()
        inverse = None
        # About every second number has an inverse that X25519 can take.
        while inverse is None:
            number = int.from_bytes(fresh_key(), "little")
            number = (number - number % 8) % _LOWEST + _LOWEST
            inverse = _inverse(number)
        self._number = number.to_bytes(POINT_BYTES, "little")
        self._inverse = inverse.to_bytes(POINT_BYTES, "little")

    def times(self, points: Array, threads: CurveThreads) -> Array:
        """Multiply the points (n, 32) by this number; SecrecyError for a useless point."""
        return self._multiply(self._number, points, threads)

    def undo(self, points: Array, threads: CurveThreads) -> Array:
        """Take back what `times` did to points."""
        return self._multiply(self._inverse, points, threads)

    def _multiply(self, number: bytes, points: Array, threads: CurveThreads) -> Array:
        multiply = self._sodium.crypto_scalarmult
        raw = points.tobytes()
        parts = [raw[i : i + POINT_BYTES] for i in range(0, len(raw), POINT_BYTES)]
        try:
            return _array(threads.map(lambda part: [multiply(number, p) for p in part], parts))
        except RuntimeError:
            # libsodium refuses a point whose multiples say nothing about the number.
            raise SecrecyError(
                "a point of small order was sent; nothing was derived from it"
            ) from None

    def _refuse(self, *_: object) -> NoReturn:
        raise SecrecyError("a secret exponent does not leave its process")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse


def _inverse(number: int) -> int | None:
    """Find an inverse of ``number`` mod ℓ that X25519 can take; None if there is none."""
    least = pow(number, -1, ORDER)
    first = least + -(-(_LOWEST - least) // ORDER) * ORDER
    fitting = [n for n in range(first, _HIGHEST, ORDER) if n % 8 == 0]
    return fitting[0] if fitting else None


def _coordinates(points: Sequence[bytes]) -> list[bytes]:
    """Map Edwards points to u = (1 + y)/(1 − y) (RFC 7748, section 4.1), by one inversion."""
    heights = [int.from_bytes(point, "little") % _HIGHEST for point in points]
    before = [1]
    for y in heights:
        before.append(before[-1] * (1 - y) % _FIELD)
    inverse = pow(before.pop(), -1, _FIELD)
    found = []
    for y, product in zip(reversed(heights), reversed(before), strict=True):
        found.append(((1 + y) * (inverse * product) % _FIELD).to_bytes(POINT_BYTES, "little"))
        inverse = inverse * (1 - y) % _FIELD
    return found[::-1]


def _array(points: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(points), np.uint8).reshape(-1, POINT_BYTES)
