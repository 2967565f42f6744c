"""The pseudo-random generator for everything secret: AES-256 in counter mode.

A stream is named by a 32-byte key and a number; its 128-bit counter starts at number · 2^64, so
streams of one key never overlap as long as each is shorter than 2^68 bytes.
"""

from __future__ import annotations

import hmac
import os
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from vertikal.errors import InputError

Array = npt.NDArray[Any]

KEY_BYTES = 32
TILE = 1 << 18
"""Bytes expanded at a time: small enough that pad, zeros and values stay in the cache."""

_ZEROS = memoryview(bytes(TILE))


def fresh_key() -> bytes:
    """32 bytes from the operating system."""
    return os.urandom(KEY_BYTES)


def derive_key(key: bytes, *purpose: str) -> bytes:
    """An independent key for ``purpose``: HMAC-SHA256 over its length-prefixed words."""
    return hmac.digest(key, encode_words(*purpose), "sha256")


def encode_words(*words: str) -> bytes:
    """Words as bytes that no other list of words shares: each is preceded by its length."""
    encoded = (word.encode() for word in words)
    return b"".join(len(word).to_bytes(4, "big") + word for word in encoded)


def keystream(key: bytes, number: int) -> CipherContext:
    """The cipher context of stream ``number`` under ``key``."""
    if len(key) != KEY_BYTES:
        raise InputError.of("key", f"{KEY_BYTES} bytes", f"{len(key)} bytes")
    if not 0 <= number < 1 << 64:
        raise InputError.of("number", "a stream number below 2^64", number)
    counter = number.to_bytes(8, "big") + bytes(8)
    return Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()


def expand_into(context: CipherContext, out: memoryview) -> None:
    """Fill ``out`` (bytes) with the next bytes of the stream."""
    for start in range(0, len(out), TILE):
        tile = out[start : start + TILE]
        context.update_into(_ZEROS[: len(tile)], tile)


def uniform_words(key: bytes, number: int, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An array of uniform unsigned integers of the given width."""
    words = np.empty(shape, np.dtype(dtype))
    if words.size:
        expand_into(keystream(key, number), words.reshape(-1).view(np.uint8).data)
    return words


def uniform_reals(key: bytes, number: int, shape: tuple[int, ...]) -> Array:
    """Doubles in the open interval (0, 1), 52 random bits each."""
    words = uniform_words(key, number, shape, np.uint64)
    return np.asarray(((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)
