"""The pseudo-random generator for everything secret: keys, and the numbers of their keystreams."""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.reused_memory import reused_memory
from vertikal.secure.keys.keystream import KEY_BYTES, TILE, Keystream

Array = npt.NDArray[Any]


def fresh_key() -> bytes:
    """Draw 32 bytes from the operating system."""
    return os.urandom(KEY_BYTES)


def derive_key(key: bytes, *purpose: str) -> bytes:
    """Derive an independent key for ``purpose``: HMAC-SHA256 over its length-prefixed texts."""
    return hmac.digest(key, encode_texts(*purpose), "sha256")


def encode_texts(*texts: str) -> bytes:
    """Encode texts as bytes that no other list of texts shares: each is preceded by its length."""
    encoded = (text.encode() for text in texts)
    return b"".join(len(text).to_bytes(4, "big") + text for text in encoded)


def uniform_elements(
    key: bytes, shape: tuple[int, ...], dtype: npt.DTypeLike, *, stream: int = 1
) -> Array:
    """Draw uniform ring elements: unsigned integers of the given width.

    They come from another stream than `uniform_reals`, so that one key can serve one draw of each.
    """
    elements = reused_memory.empty(shape, dtype)
    if elements.size:
        Keystream(key, stream).fill(elements.reshape(-1).view(np.uint8).data)
    return elements


def uniform_reals(key: bytes, shape: tuple[int, ...], *, stream: int = 0) -> Array:
    """Draw doubles in the open interval (0, 1), 52 random bits each."""
    bits = uniform_elements(key, shape, np.uint64, stream=stream)
    return np.asarray(((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def shuffled(count: int) -> Array:
    """Shuffle the numbers below ``count`` by randomness of the operating system."""
    return np.argsort(uniform_elements(fresh_key(), (count,), np.uint64), kind="stable")


def add_streams(values: Array, streams: Sequence[tuple[bytes, int]]) -> None:
    """values += Σ sign · stream(key) in place, over (key, sign) of sign 1 or −1.

    All streams of a tile are added before the next tile is looked at, so that the tile stays in the
    cache and no stream ever exists as a whole.
    """
    if values.dtype.kind != "u" or values.ndim != 1 or not values.flags.c_contiguous:
        raise InputError.of(
            "values", "a contiguous vector of ring elements", f"{values.dtype} {values.shape}"
        )
    opened = [(Keystream(key, 0), sign) for key, sign in streams]
    height = TILE // values.itemsize
    tile = reused_memory.empty((min(height, values.size),), values.dtype)
    for start in range(0, values.size, height):
        part = values[start : start + height]
        pad = tile[: part.size]
        view = pad.view(np.uint8).data
        for stream, sign in opened:
            stream.fill(view)
            (np.add if sign > 0 else np.subtract)(part, pad, out=part)
