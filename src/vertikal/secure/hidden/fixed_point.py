"""Fixed point with a range that is proved, not hoped for: how real vectors meet a ring matrix.

A matrix whose entries are real numbers of magnitude at most 1, in fixed point with m fraction bits,
is multiplied by a vector v. Every component of the product is at most ‖v‖₁, so v may be written
with b fraction bits as long as ‖v‖₁·2^(m+b) stays below half the ring; the largest such b is taken
for each vector. Nothing wraps, whatever the data, and no bit is wasted.

With w = 32, m = 8, ‖v‖₁ = 5: 5·1.02·2^8·2^b < 2^31 gives b = 20, and products carry 28 fraction
bits.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import RingError
from vertikal.ring.integers import Ring
from vertikal.ring.wide_numbers import DROPPED
from vertikal.secure.keys.prg import uniform_reals

Array = npt.NDArray[Any]

TABLE_BITS = {32: 8, 64: 16}
"""Fraction bits of a cosine: eight are as fine as phases of eight bits.

A feature is the product of two. In 32 bits its last eight are rounded away (`ring.wide_numbers`),
so that they are left to the vector."""

MARGIN = 1.02
"""Rounded cosines can exceed 1 a little: with 8 bits by 2.5·2^-8."""

_MOST = 60
_COARSE = 2.0**20
"""Units of the largest entry below which rounding is dithered."""


@dataclass(frozen=True)
class FixedPointProducts:
    """Vectors and products for matrices of ``matrix_bits`` fraction bits in a ring."""

    ring: Ring
    cosine_bits: int | None = None
    """Fraction bits of a cosine, if they are not `TABLE_BITS`."""

    @property
    def table_bits(self) -> int:
        return self.cosine_bits or TABLE_BITS[self.ring.bits]

    @property
    def wide(self) -> bool:
        """True if cosines are multiplied as wide numbers, of which the last bits are dropped."""
        return self.ring.bits == 32

    @property
    def matrix_bits(self) -> int:
        return 2 * self.table_bits - (DROPPED if self.wide else 0)

    def table(self, values: Array) -> Array:
        """Cosines or sines as ring elements, or as words that hold wide numbers."""
        ring = Ring(64) if self.wide else self.ring
        return ring.encode_reals(values, self.table_bits, 1)

    @cache  # noqa: B019 - of a few kinds of fixed point, each used for all blocks of a run
    def turns(self, phase_bits: int) -> tuple[Array, Array]:
        """Return the cosines and the sines of all phases of so many bits."""
        angles = np.arange(2**phase_bits) * (2 * math.pi / 2**phase_bits)
        return self.table(np.cos(angles)), self.table(np.sin(angles))

    def encode(self, vectors: Array, what: str, noise: float = 0.0) -> tuple[Array, Array]:
        """Ring elements of vectors (size, k), and the fraction bits (k,) of their products.

        ``noise`` is the share of full scale that is added to a product: it must not wrap either.
        """
        vectors = np.asarray(vectors, np.float64)
        if not np.isfinite(vectors).all():
            raise RingError(f"fixed point: {what} must be finite, got NaN or infinity")
        elements = np.zeros(vectors.shape, self.ring.dtype)
        # A vector of zeros takes any scale; the finest, or noise on its product would seem large.
        fractions = np.full(vectors.shape[1], 2 * self.ring.bits)
        room = (1 - noise) * 2.0 ** (self.ring.bits - 1 - self.matrix_bits) / MARGIN
        for column, values in enumerate(vectors.T):
            length, largest = float(np.abs(values).sum()), float(np.abs(values).max(initial=0.0))
            if length > 0:
                # Rounding adds less than one unit per entry.
                units = room - np.count_nonzero(values)
                bits = -_MOST
                if units > 0:
                    bits = math.floor(math.log2(units) - math.log2(length))
                bits = min(bits, _MOST - math.frexp(largest)[1])
                if bits + math.log2(largest) < 0:
                    raise RingError(
                        f"fixed point: {what} of {len(values)} entries do not fit into "
                        f"{self.ring.bits} bits; use disclosure=Values(bits=64), or fewer rows"
                    )
                elements[:, column] = rounded(np.ldexp(values, bits)).astype(self.ring.dtype)
                fractions[column] = bits
        return elements, fractions + self.matrix_bits

    def decode(self, products: Array, fractions: Array) -> Array:
        """Real numbers (size, k) of ring elements with these fraction bits per column."""
        signed = products.view(np.dtype(f"int{self.ring.bits}"))
        return np.ldexp(signed.astype(np.float64), -fractions)


def rounded(units: Array) -> Array:
    """Whole numbers, as int64.

    Where an entry is a few units only, it is rounded up or down by chance in proportion, or equal
    residuals of many rows would all be off to the same side. The coins are a digest of the numbers:
    they must not be related to the data, and need not be secret.
    """
    if np.abs(units).max() >= _COARSE:
        return np.rint(units).astype(np.int64)
    coins = uniform_reals(hashlib.sha256(units.tobytes()).digest(), units.shape)
    # A zero stays one, whatever its coin: it was not counted in the range.
    return np.where(units == 0, 0, np.floor(units + coins)).astype(np.int64)
