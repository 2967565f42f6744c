"""Words of any number of bits as bytes: nothing travels that its reader would round off.

A word is cut into fields of 32, 16, 8, 4, 2 and 1 bits, those that its length is the sum of, the
lowest bits first; all first fields are sent, then all second ones. Fields of less than a byte
share one. Words of 12 bits 0x123 and 0x456 are 0x23, 0x56 (fields of 8) and 0x41 (fields of 4, the
first in the lower half); zeros fill up the eight words to which the count is rounded up, so that
every field ends with a byte.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_FIELDS = (32, 16, 8, 4, 2, 1)


def wire_bytes(count: int, bits: int) -> int:
    """Bytes of so many words."""
    return -(-count // 8) * bits


def pack(words: Array, bits: int) -> Array:
    """Bytes of unsigned words below 2^bits."""
    flat = np.zeros(-(-words.size // 8) * 8, words.dtype)
    flat[: words.size] = words.reshape(-1)
    parts, place = [], 0
    for size in _FIELDS:
        if not bits & size:
            continue
        field = flat >> place
        if size >= 8:
            parts.append(field.astype(f"<u{size // 8}").view(np.uint8))
        else:
            small = (field & flat.dtype.type((1 << size) - 1)).astype(np.uint8)
            small = small.reshape(-1, 8 // size) << np.arange(0, 8, size, dtype=np.uint8)
            parts.append(np.bitwise_or.reduce(small, axis=1))
        place += size
    return np.concatenate(parts)


def unpack(packed: Array, shape: tuple[int, ...], bits: int) -> Array:
    """Words of this shape, uint32 or if they are longer uint64, of the bytes of `pack`."""
    count = math.prod(shape)
    padded = -(-count // 8) * 8
    words: Array = np.zeros(padded, np.uint32 if bits <= 32 else np.uint64)
    place = start = 0
    for size in _FIELDS:
        if not bits & size:
            continue
        stop = start + padded * size // 8
        field = packed[start:stop]
        if size >= 8:
            field = field.view(f"<u{size // 8}")
        else:
            shifts = np.arange(0, 8, size, dtype=np.uint8)
            field = (field[:, None] >> shifts & np.uint8((1 << size) - 1)).reshape(-1)
        words |= field.astype(words.dtype) << words.dtype.type(place)
        place, start = place + size, stop
    return words[:count].reshape(shape)
