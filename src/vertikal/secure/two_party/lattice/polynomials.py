"""The ring Z_q[X]/(X^N + 1), by residues: what both parties compute with polynomials.

A batch of polynomials is a uint32 array (primes, count, N) of residues, either of coefficients or
of values, the transform of them: sums and products of values are entry by entry. Nothing here is
secret or random.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.secure.two_party.lattice.loops import LOOPS, LatticeLoops
from vertikal.secure.two_party.lattice.parameters import LatticeParameters

Array = npt.NDArray[Any]


class PolynomialRing:
    """Arithmetic for one set of parameters."""

    def __init__(self, parameters: LatticeParameters, loops: LatticeLoops | None = None) -> None:
        self.degree, self.primes = parameters.degree, parameters.primes
        self.modulus = parameters.modulus
        self._loops = loops or LOOPS
        self._roots = [_powers(self.degree, prime, inverse=False) for prime in self.primes]
        self._back = [_powers(self.degree, prime, inverse=True) for prime in self.primes]
        self._one_over_degree = [pow(self.degree, -1, prime) for prime in self.primes]
        # (q/p)^-1 mod p: the residue of x times it is the numerator of x/q's part over p.
        self._numerators = [pow(self.modulus // prime, -1, prime) for prime in self.primes]

    def lift(self, coefficients: Array) -> Array:
        """Residues of whole numbers (count, N) that are smaller than each prime in magnitude."""
        whole = np.asarray(coefficients, np.int32)
        found = np.empty((len(self.primes), *whole.shape), np.uint32)
        negative = whole >> np.int32(31)
        for limb, prime in zip(found, self.primes, strict=True):
            np.add(whole, negative & np.int32(prime), out=limb.view(np.int32))
        return found

    def add(self, a: Array, b: Array) -> Array:
        """a + b of residues."""
        total = a + b
        for limb, prime in zip(total, self.primes, strict=True):
            # Below the prime the difference wraps to a larger number.
            np.minimum(limb, limb - np.uint32(prime), out=limb)
        return np.asarray(total)

    def values(self, coefficients: Array) -> Array:
        """Transform residues of coefficients, in place; returns them."""
        for limb, (roots, ratios), prime in zip(
            coefficients, self._roots, self.primes, strict=True
        ):
            self._loops.transform(limb, roots, ratios, prime)
        return coefficients

    def coefficients(self, values: Array) -> Array:
        """Undo `values`, in place; returns them."""
        for limb, (roots, ratios), scale, prime in zip(
            values, self._back, self._one_over_degree, self.primes, strict=True
        ):
            self._loops.back(limb, roots, ratios, scale, prime)
        return values

    def multiply_add(self, a: Array, b: Array, c: Array) -> Array:
        """a·b + c of values; ``b`` may hold one polynomial, which serves all of ``a``."""
        out = np.empty_like(a)
        for i, prime in enumerate(self.primes):
            self._loops.multiply_add(a[i], b[i], c[i], out[i], prime)
        return out

    def negative(self, values: Array) -> Array:
        """−values."""
        primes = np.array(self.primes, np.uint32).reshape(-1, 1, 1)
        return np.asarray((primes - values) % primes)

    def reduce(self, words: Array) -> Array:
        """Residues of uniform words, uint64 (primes, count, N): within 2^-40 of uniform each."""
        out = np.empty(words.shape, np.uint32)
        for limb, part, prime in zip(out, words, self.primes, strict=True):
            self._loops.reduce(part, limb, prime)
        return out

    def scaled(self, words: Array, bits: int) -> Array:
        """Residues of round(q·word/2^bits), exactly: words unsigned (count, N), ``bits`` up to 63.

        q·word + ρ = 2^bits·result with ρ = −q·word mod 2^bits, taken around zero. As q is 0 mod
        each prime, the result is ρ/2^bits there.
        """
        rest = words.astype(np.uint64) * np.uint64(-self.modulus % 2**64)
        rest &= np.uint64((1 << bits) - 1)
        # Those above the middle are ρ + 2^bits, whose quotient is one too large.
        above = rest > np.uint64(1 << (bits - 1))
        found = np.empty((len(self.primes), *words.shape), np.uint32)
        for limb, prime in zip(found, self.primes, strict=True):
            self._loops.reduce(rest, limb, prime)
            factor = np.full((1, self.degree), pow(2**bits, -1, prime), np.uint32)
            self._loops.multiply_add(limb, factor, above * np.uint32(prime - 1), limb, prime)
        return found

    def folded(self, coefficients: Array) -> Array:
        """c_0 and c_k − c_{N−k} for k < N/2, by residues that may be up to twice the primes."""
        half = self.degree // 2
        primes = np.array(self.primes, np.uint32).reshape(-1, 1, 1)
        found = coefficients[..., :half] + primes
        found[..., 1:] -= coefficients[..., :half:-1]
        return np.asarray(found)

    def fractions(self, coefficients: Array, bits: int) -> Array:
        """round(2^bits·x/q) mod 2^bits of coefficients x by residues; uint64, ``bits`` up to 55."""
        # In units of 2^-64 of q, so that whole multiples of q wrap. Each prime's part is cut off at
        # 2^-56: half of that is added back, or all words would be too small by as much, and sums of
        # millions of them would show it.
        start = (1 << (63 - bits)) + (len(self.primes) << 7)
        total = np.full(coefficients.shape[1:], start, np.uint64)
        for limb, factor, prime in zip(coefficients, self._numerators, self.primes, strict=True):
            self._loops.add_fractions(limb, factor, total, prime)
        total >>= np.uint64(64 - bits)
        return total

    def forward_sums(self, matrix: Array, vectors: Array) -> Array:
        """Σ_C matrix[:, R, C]·vectors[:, k, C] of values: (primes, k, R, N)."""
        primes, rows, _, degree = matrix.shape
        out = np.empty((primes, vectors.shape[1], rows, degree), np.uint32)
        for i, prime in enumerate(self.primes):
            self._loops.forward_sums(matrix[i], vectors[i], out[i], prime)
        return out

    def adjoint_sums(self, matrix: Array, vectors: Array) -> Array:
        """Σ_R matrix[:, R, C]·vectors[:, k, R] of values: (primes, k, C, N)."""
        primes, _, columns, degree = matrix.shape
        out = np.empty((primes, vectors.shape[1], columns, degree), np.uint32)
        for i, prime in enumerate(self.primes):
            self._loops.adjoint_sums(matrix[i], vectors[i], out[i], prime)
        return out

    def all_below(self, residues: Array) -> bool:
        """Return True if all residues (primes, …) are below their primes."""
        return all(
            int(limb.max(initial=0)) < prime
            for limb, prime in zip(residues, self.primes, strict=True)
        )


@cache
def _powers(degree: int, prime: int, *, inverse: bool) -> tuple[Array, Array]:
    """Powers of a 2N-th root of unity in bit-reversed order, and ⌊power·2^32/p⌋."""
    root = next(
        found
        for base in range(2, prime)
        if pow(found := pow(base, (prime - 1) // (2 * degree), prime), degree, prime) == prime - 1
    )
    if inverse:
        root = pow(root, -1, prime)
    bits = degree.bit_length() - 1
    powers = [1] * degree
    for exponent in range(1, degree):
        powers[exponent] = powers[exponent - 1] * root % prime
    order = [int(format(i, f"0{bits}b")[::-1], 2) for i in range(degree)]
    roots = np.array([powers[i] for i in order], np.uint32)
    ratios = (roots.astype(np.uint64) << np.uint64(32)) // np.uint64(prime)
    return roots, ratios.astype(np.uint32)
