"""Secrets and errors of the encryption, from the stream cipher.

Keys of the streams come from the operating system and are never used twice. `lattice_gaussian`
does not serve here: its numbers are discrete Gaussian of a width of 10^8 and more, these of 3.24.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.secure.keys.prg import fresh_key, uniform_elements
from vertikal.secure.two_party.lattice.parameters import COINS

Array = npt.NDArray[Any]


class SmallNumbers:
    """Ternary numbers and errors of one party, each drawn once."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or fresh_key()
        self._next = 0

    def words(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Uniform unsigned integers."""
        self._next += 1
        return uniform_elements(self._key, shape, dtype, stream=self._next)

    def ternary(self, shape: tuple[int, ...]) -> Array:
        """Numbers −1, 0 and 1, equally likely up to 2^-30, as int8."""
        # ⌊3·word/2^32⌋: each of the three has 2^32/3 words, rounded up or down.
        thirds = self.words(shape, np.uint32).astype(np.uint64) * np.uint64(3) >> np.uint64(32)
        return np.asarray(thirds.astype(np.int8) - np.int8(1))

    def errors(self, shape: tuple[int, ...]) -> Array:
        """Centred binomial numbers: `COINS` coins less as many others, as int8."""
        words = self.words(shape, np.uint64)
        mask = np.uint64((1 << COINS) - 1)
        heads = np.bitwise_count(words & mask).astype(np.int8)
        heads -= np.bitwise_count(words >> np.uint64(COINS) & mask).astype(np.int8)
        return np.asarray(heads)
