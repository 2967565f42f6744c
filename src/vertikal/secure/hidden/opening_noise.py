"""Noise of the helper's on what it opens: as many bits of full scale remain as were agreed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.secure.keys.prg import fresh_key, uniform_elements

Array = npt.NDArray[Any]


class OpeningNoise:
    """Ring elements of w bits that nobody but the helper knows, each drawn once."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._key, self._drawn = fresh_key(), 0

    def draw(self, shape: tuple[int, ...], bits: int) -> Array:
        """Draw noise, uniform in ±2^(w − 1 − bits)."""
        noise = uniform_elements(self._key, shape, self._dtype, stream=self._drawn)
        self._drawn += 1
        width = 1 << (8 * self._dtype.itemsize - bits)
        noise &= np.array(width - 1, self._dtype)
        noise -= np.array(width // 2, self._dtype)
        return noise
