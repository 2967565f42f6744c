"""The integers mod 2^k, k = 8, 16, 32 or 64, and how angles and real numbers are written in them.

NumPy's unsigned integers wrap by themselves, so a ring element is an array of that dtype and a sum
in the ring is `+`. Encoding refuses what it cannot hold; it never lets a number wrap that was not
meant to (an angle is: cos sees it mod 2π only).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError, RingError

Array = npt.NDArray[Any]

WIDTHS = (8, 16, 32, 64)

# Adding 1.5·2^52 to a double |t| < 2^51 rounds it half-to-even and leaves the integer, in two's
# complement, in the low bits of the mantissa: one addition instead of rint, cast and modulo.
ROUNDER = 6755399441055744.0
LIMIT = 2.0**51

WIDE_HIGH = 20
WIDE_LOW = 76


@dataclass(frozen=True)
class Ring:
    """Z_{2^bits}.

    >>> ring = Ring(8)
    >>> ring.encode_angles(np.array([0.0, np.pi, 2 * np.pi, -np.pi / 2]))
    array([  0, 128,   0, 192], dtype=uint8)
    """

    bits: int

    def __post_init__(self) -> None:
        if self.bits not in WIDTHS:
            raise InputError.of("bits", f"one of {WIDTHS}", self.bits)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"uint{self.bits}")

    @property
    def steps(self) -> float:
        """Ring elements per radian, 2^k / 2π."""
        return float(2**self.bits / (2 * math.pi))

    def encode_angles(self, angles: Array) -> Array:
        """round(angle · 2^k/2π) mod 2^k; refuses angles that are not finite or too large."""
        return self.wrap(np.asarray(angles, np.float64) * self.steps)

    def wrap(self, steps: Array) -> Array:
        """Angles already measured in ring steps, rounded half to even, mod 2^k."""
        steps = np.asarray(steps, np.float64)
        lowest, highest = (steps.min(), steps.max()) if steps.size else (0.0, 0.0)
        check_steps(float(lowest), float(highest))
        shifted = (steps + ROUNDER).view(np.uint64)
        if self.bits == 64:
            # All bits of the integer are wanted: take the constant's own pattern off again.
            return shifted - np.float64(ROUNDER).view(np.uint64)
        return shifted.astype(self.dtype)

    def decode_angles(self, phases: Array) -> Array:
        """Radians in [0, 2π), double precision."""
        # A double cannot hold all of 64 bits: it may round up to a whole turn, which is excluded.
        return np.minimum(phases.astype(np.float64) / self.steps, math.nextafter(2 * math.pi, 0))

    def encode_reals(self, values: Array, fraction_bits: int, summands: int) -> Array:
        """Fixed point: round(x · 2^fraction_bits) mod 2^k, in two's complement.

        Refuses values for which a sum of ``summands`` such numbers could leave the range.
        """
        values = np.asarray(values, np.float64)
        largest = self.largest_real(fraction_bits, summands)
        worst = float(np.abs(values).max()) if values.size else 0.0
        if not math.isfinite(worst):
            raise RingError("fixed point: values must be finite, got NaN or infinity")
        if worst > largest:
            raise RingError(
                f"fixed point: values must lie within ±{largest:.6g} ({self.bits} bits, "
                f"{fraction_bits} of them fraction, {summands} summands), got {worst:.6g}; "
                "scale the columns or the targets"
            )
        return np.rint(values * 2.0**fraction_bits).astype(np.int64).astype(self.dtype)

    def decode_reals(self, elements: Array, fraction_bits: int) -> Array:
        """The real numbers that `encode_reals` wrote, or their sum."""
        signed = elements.view(np.dtype(f"int{self.bits}"))
        return np.asarray(signed.astype(np.float64) * 2.0**-fraction_bits)

    def encode_wide(self, values: Array, summands: int) -> Array:
        """Fixed point of 76 fraction bits in two elements, for scalars of very unequal size.

        The last axis of the result holds the part above 2^-20 and the remainder. Z_{2^64} only.
        """
        high = self.encode_reals(values, WIDE_HIGH, summands)
        rest = np.asarray(values, np.float64) - self.decode_reals(high, WIDE_HIGH)
        return np.stack((high, self.encode_reals(rest, WIDE_LOW, summands)), axis=-1)

    def decode_wide(self, elements: Array) -> Array:
        """The numbers that `encode_wide` wrote, or their sum."""
        high = self.decode_reals(np.array(elements[..., 0]), WIDE_HIGH)
        low = self.decode_reals(np.array(elements[..., 1]), WIDE_LOW)
        return np.asarray(high + low)

    def largest_real(self, fraction_bits: int, summands: int) -> float:
        """The largest magnitude of which ``summands`` can be added without leaving the range."""
        # Each summand may be rounded up by half a unit; the last factor allows for the division.
        units = (2.0 ** (self.bits - 1) - 1) / summands - 0.5
        return max(0.0, math.ldexp(units * (1 - 2.0**-40), -fraction_bits))


def check_steps(lowest: float, highest: float) -> None:
    """Refuse angles that are not finite, or so large that rounding them means nothing."""
    worst = max(-lowest, highest)
    if math.isnan(lowest + highest) or math.isinf(worst):
        raise RingError("phases: projections must be finite, got NaN or infinity")
    if worst >= LIMIT:
        raise RingError(
            f"phases: a projection of {worst:.3g} ring steps is beyond double precision "
            f"(at most {LIMIT:.3g}); raise the bandwidth or scale the columns"
        )
