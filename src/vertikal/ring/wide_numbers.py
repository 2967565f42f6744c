"""Numbers mod 2^40 of five bytes each, for what loses its last eight bits and then has 32.

Shares of a fixed-point number x = a + h mod 2^40 are rounded to shares of x / 2^8 mod 2^32 by each
holder alone: a carry from one share to the other is worth 2^40 / 2^8 = 2^32, which is zero there.
So the result is never off by more than one unit, and right on average. (Cutting shares within one
ring is not: there the carry counts.)

In 8 bits of which 3 are dropped, mod 2^5: x = 21 = 250 + 27 mod 256, 250 / 8 rounds to 31 and
27 / 8 to 3, and 31 + 3 = 2 mod 32, where 21 / 8 = 2.6.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Halves: TypeAlias = tuple[Array, Array]
"""The low words (uint32) and the high bytes (uint8) of an array of wide numbers, as views."""

WIDE = 40
"""Bits of a wide number."""

DROPPED = 8
"""Bits that are rounded away."""

WIDE_BYTES = WIDE // 8


def wide_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the bytes that hold wide numbers of this shape."""
    return (WIDE_BYTES, *shape)


def halves(planes: Array) -> Halves:
    """View bytes (5, …) as wide numbers (…): the first four planes are the low words."""
    shape = planes.shape[1:]
    return planes[:-1].reshape(-1).view("<u4").reshape(shape), planes[-1]


def joined(number: Halves) -> Array:
    """Make words of 64 bits of wide numbers."""
    low, high = number
    return np.asarray(low | (high.astype(np.uint64) << np.uint64(32)))
