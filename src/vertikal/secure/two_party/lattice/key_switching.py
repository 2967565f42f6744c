"""Key switching: ciphertexts under one key s become ones under keys s_1 … s_t with one c1 for all.

Of the answers to t ciphertexts the helper keeps every c0, and sends every c1. To send one c1 for
all of them, it writes c1_i = x_i of ciphertext i in digits, x_i = Σ_j δ_ij g_j, and multiplies
these by a switching key of the label party's: a_ij from a seed, and for each new key

    b_ijτ = e − a_ij·s_τ + [i = τ]·g_j·s            (`SecretKey.switching_key`).

With c1 = Σ_ij δ_ij a_ij for all, and c0_τ + Σ_ij δ_ij b_ijτ for each, phases are what they were:

    c0_τ + Σ δ_ij b_ijτ + (Σ δ_ij a_ij)·s_τ = c0_τ + x_τ·s + Σ δ_ij e.

New keys that share their c1 are as good as one key of many columns (Peikert, Vaikuntanathan and
Waters, CRYPTO 2008); the key s is encrypted under others than itself only.

x is cut off at 2^-40 of q and written in eight digits of 5 bits, from −16 to 15. So a phase is off
by 3.24·9.2·√(8tN) for the key's errors and 0.29·2^-40·q·√(2N/3) for what is cut off: for t = 4 and
N = 2,048 that is 7,800, where a word of `shared_cosines` ends at 2^19.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.secure.two_party.lattice.polynomials import PolynomialRing

Array = npt.NDArray[Any]

DIGITS = 8
DIGIT_BITS = 5
_HALF = 1 << (DIGIT_BITS - 1)
_CENTRE = sum(_HALF << (DIGIT_BITS * j) for j in range(DIGITS))
"""Added to a word, it makes the digits of the sum those of the word plus one half of full scale."""


def gadget(modulus: int) -> list[int]:
    """The factors g_j: digit j counts in units of q/2^40·2^(5j), rounded."""
    cut = DIGITS * DIGIT_BITS
    return [(modulus * 2 ** (DIGIT_BITS * j) + 2 ** (cut - 1)) // 2**cut for j in range(DIGITS)]


def digits_of(ring: PolynomialRing, coefficients: Array) -> Array:
    """Digits (count, DIGITS, N) of polynomials by residues of their coefficients, int32."""
    words = ring.fractions(coefficients, DIGITS * DIGIT_BITS) + np.uint64(_CENTRE)
    shifts = np.arange(0, DIGITS * DIGIT_BITS, DIGIT_BITS, dtype=np.uint64)[:, None]
    digits = words[:, None] >> shifts & np.uint64(2 * _HALF - 1)
    return np.asarray(digits.astype(np.int32) - np.int32(_HALF))


class SwitchingKey:
    """The helper's half of the label party's switching key, for ``count`` ciphertexts at a time.

    ``a`` (primes, count · DIGITS, N) and ``b`` (primes, count, count · DIGITS, N) are values.
    """

    def __init__(self, ring: PolynomialRing, count: int, a: Array, b: Array) -> None:
        self._ring, self._count = ring, count
        self._vectors = np.concatenate((a[:, None], b), axis=1)  # (primes, 1 + count, digits, N)

    def switch(self, c0: Array, c1: Array) -> tuple[Array, Array]:
        """Switch ciphertexts (primes, k, N), of which each ``count`` in turn come to share a c1.

        Values in and out. If the last ones are fewer than ``count``, they share a c1 all the same.
        """
        ring, (primes, k, degree) = self._ring, c0.shape
        groups = -(-k // self._count)
        digits = np.zeros((groups * self._count, DIGITS, degree), np.int32)
        digits[:k] = digits_of(ring, ring.coefficients(c1.copy()))
        values = ring.values(ring.lift(digits.reshape(-1, degree)))
        sums = ring.forward_sums(
            values.reshape(primes, groups, self._count * DIGITS, degree), self._vectors
        )
        # (primes, 1 + count, groups, N): first what all share, then each one's own.
        own = sums[:, 1:].transpose(0, 2, 1, 3).reshape(primes, -1, degree)[:, :k]
        return ring.add(c0, own), np.ascontiguousarray(sums[:, 0])
