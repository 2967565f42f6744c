"""Gaussian noise on a lattice, from the stream cipher.

A double drawn as `mu + sigma * normal()` carries the seams of its arithmetic: which doubles can
occur depends on mu, and one output may tell mu exactly (Mironov 2012). Here numbers are integers on
a lattice, noise is an integer whose distribution does not depend on the number it hides, and their
sum in a ring is exact. So the output has no seams to read.

The noise is Σ_j 16^j·g_j over six digits, each g_j discrete Gaussian of width s₀ ∈ [96, 192] by
comparing 64 uniform bits (128 where these do not decide) with a table of its distribution function.
A discrete Gaussian of width s₀ is uniform mod 16 up to exp(−2π²(s₀/16)²) < 1e-300, so the sum is
discrete Gaussian of width s = s₀·√(Σ 256^j), about 1e8·s₀/96 (Micciancio and Walter 2017). On so
fine a lattice each probability is that of a rounded continuous Gaussian, whose privacy is exactly
that of the continuous one, up to a factor 1 ± (x² + 1)/24s² at x deviations: `LOG_RATIO` bounds it
wherever the digits reach. `DISTANCE` bounds what tables of 128 bits and their ends add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.secure.keys import prg

Array = npt.NDArray[Any]

DIGITS = 6
BASE = 16
NARROWEST = 96.0
WIDEST = 2 * NARROWEST
SPREAD = math.sqrt(sum(BASE ** (2 * digit) for digit in range(DIGITS)))
"""Width of the sum over the width of one digit."""
DISTANCE = 2.0**-112
"""More than the total variation distance, per number, that tables and their ends make."""
LOG_RATIO = 2.0**-49
"""More than the largest |log| of a probability over that of a rounded continuous Gaussian."""

_TAIL = 13.5
_BITS = 128
_SCALE = 55


def fraction_bits_for(deviation: float) -> int:
    """Find the fraction bits f of the lattice 2^-f·Z on which noise of this deviation is drawn."""
    if not (math.isfinite(deviation) and deviation > 0):
        raise InputError.of("deviation", "a positive number", deviation)
    return math.ceil(math.log2(NARROWEST * SPREAD / deviation))


@dataclass(frozen=True)
class LatticeGaussian:
    """Integers of deviation ``width`` (in lattice steps), discrete Gaussian."""

    width: float
    _high: Array = field(init=False, repr=False, compare=False)
    _low: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digit = self.width / SPREAD
        if not NARROWEST * (1 - 1e-12) <= digit <= WIDEST * (1 + 1e-12):
            raise InputError.of(
                "width", f"from {NARROWEST * SPREAD:g} to {WIDEST * SPREAD:g}", self.width
            )
        bounds = cumulative(digit)
        high = np.array([bound >> 64 for bound in bounds], np.uint64)
        object.__setattr__(self, "_high", high)
        object.__setattr__(self, "_low", [bound & (2**64 - 1) for bound in bounds])

    @property
    def reach(self) -> int:
        """No sample is larger than this."""
        digits: int = sum(BASE**digit for digit in range(DIGITS))
        return math.ceil(_TAIL * WIDEST) * digits

    def sample(self, key: bytes, shape: tuple[int, ...]) -> Array:
        """int64 noise of ``shape``, a function of ``key``: never use a key twice."""
        total = np.zeros(shape, np.int64)
        for digit in range(DIGITS):
            words = prg.uniform_elements(key, shape, np.uint64, stream=2 * digit)
            total += BASE**digit * self.digit(words, prg.derive_key(key, "ties", str(digit)))
        return total

    def digit(self, words: Array, ties: bytes) -> Array:
        """One digit per uniform word: the first entry of the table above it; more bits on a tie."""
        position = np.searchsorted(self._high, words.reshape(-1), side="left")
        position = np.minimum(position, len(self._high) - 1)
        # A word above the last bound's first half is a tie with it, since bounds end at 1.
        tied = np.flatnonzero(self._high[position] == words.reshape(-1))
        if tied.size:
            further = prg.uniform_elements(ties, (len(tied),), np.uint64)
            for place, word in zip(tied, further, strict=True):
                position[place] = self._after_tie(int(position[place]), int(word))
        reach = (len(self._high) - 1) // 2
        return np.asarray((position - reach).reshape(words.shape))

    def _after_tie(self, position: int, word: int) -> int:
        """The first entry with these high bits whose low bits exceed ``word``."""
        high = self._high[position]
        while (
            position + 1 < len(self._low)
            and self._high[position] == high
            and word >= self._low[position]
        ):
            position += 1
        return position


def fresh_noise(width: float, shape: tuple[int, ...]) -> Array:
    """Draw discrete Gaussian integers of deviation ``width`` (int64), anew at every call.

    The key comes from the operating system: noise that came twice would cancel.
    """
    return LatticeGaussian(width).sample(prg.fresh_key(), shape)


@cache
def cumulative(width: float) -> list[int]:
    """2^128·P(X ≤ k) for k from −reach to reach, X discrete Gaussian; the last is 2^128 − 1."""
    reach = math.ceil(_TAIL * width)
    with localcontext() as context:
        context.prec = 60
        spread = 2 * Decimal(width) * Decimal(width)
        half = [
            int((-(Decimal(k) * Decimal(k)) / spread).exp().scaleb(_SCALE))
            for k in range(reach + 1)
        ]
    weights = [*reversed(half[1:]), *half]
    whole = sum(weights)
    bounds = [(total << _BITS) // whole for total in accumulate(weights)]
    bounds[-1] = 2**_BITS - 1
    return bounds
