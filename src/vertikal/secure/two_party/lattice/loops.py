"""Inner loops over residues mod one prime below 2^24, in numpy; compiled ones where numba is.

All arithmetic is exact. Residues are uint32 (polynomials, N), one polynomial per row. The transform
is the negacyclic one (a product mod X^N + 1 becomes entry by entry), its values in bit-reversed
order, which is the same for all polynomials of a ring and so never undone.

A double holds whole numbers below 2^53 exactly, so that a number x below 2^52 is reduced by the
quotient ⌊x·(1/p)⌋, which is off by one at most, and one correction.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class LatticeLoops(Protocol):
    """The inner loops; arrays are C-ordered, residues uint32 and below the prime."""

    def transform(self, values: Array, roots: Array, ratios: Array, prime: int) -> None:
        """Transform each row in place; ``ratios`` are ⌊roots·2^32/p⌋."""

    def back(self, values: Array, roots: Array, ratios: Array, scale: int, prime: int) -> None:
        """Undo `transform`; ``roots`` are the inverse ones, ``scale`` is 1/N."""

    def multiply_add(self, a: Array, b: Array, c: Array, out: Array, prime: int) -> None:
        """out = a·b + c mod p, all (rows, N); ``b`` may have one row, which serves all."""

    def reduce(self, words: Array, out: Array, prime: int) -> None:
        """out = words mod p, from uint64 (rows, N)."""

    def add_fractions(self, values: Array, factor: int, total: Array, prime: int) -> None:
        """total += 2^8·⌊2^56·(values·factor mod p)/p⌋, uint64; values are below 2p."""

    def forward_sums(self, matrix: Array, vectors: Array, out: Array, prime: int) -> None:
        """out (k, R, N) = Σ_C matrix (R, C, N) · vectors (k, C, N) mod p, entry by entry."""

    def adjoint_sums(self, matrix: Array, vectors: Array, out: Array, prime: int) -> None:
        """out (k, C, N) = Σ_R matrix (R, C, N) · vectors (k, R, N) mod p, entry by entry."""


class NumpyLatticeLoops:
    """The loops in numpy."""

    def transform(self, values: Array, roots: Array, ratios: Array, prime: int) -> None:
        rows, degree = values.shape
        length, blocks = degree // 2, 1
        p = np.uint64(prime)
        while length:
            pairs = values.reshape(rows, blocks, 2, length)
            low = pairs[:, :, 0].astype(np.uint64)
            high = pairs[:, :, 1] * roots[blocks : 2 * blocks, None].astype(np.uint64) % p
            pairs[:, :, 0] = (low + high) % p
            pairs[:, :, 1] = (low + p - high) % p
            length, blocks = length // 2, 2 * blocks

    def back(self, values: Array, roots: Array, ratios: Array, scale: int, prime: int) -> None:
        rows, degree = values.shape
        length, blocks = 1, degree // 2
        p = np.uint64(prime)
        while blocks:
            pairs = values.reshape(rows, blocks, 2, length)
            low, high = pairs[:, :, 0].astype(np.uint64), pairs[:, :, 1].astype(np.uint64)
            pairs[:, :, 0] = (low + high) % p
            turned = (low + p - high) * roots[blocks : 2 * blocks, None].astype(np.uint64)
            pairs[:, :, 1] = turned % p
            length, blocks = 2 * length, blocks // 2
        values[...] = values * np.uint64(scale) % p

    def multiply_add(self, a: Array, b: Array, c: Array, out: Array, prime: int) -> None:
        out[...] = (a.astype(np.uint64) * b + c) % np.uint64(prime)

    def reduce(self, words: Array, out: Array, prime: int) -> None:
        out[...] = words % np.uint64(prime)

    def add_fractions(self, values: Array, factor: int, total: Array, prime: int) -> None:
        p, digit = np.uint64(prime), np.uint64(28)
        numerators = values * np.uint64(factor) % p
        upper, rest = np.divmod(numerators << digit, p)
        total += ((upper << digit) + (rest << digit) // p) << np.uint64(8)

    def forward_sums(self, matrix: Array, vectors: Array, out: Array, prime: int) -> None:
        for k, vector in enumerate(vectors.astype(np.uint64)):
            for i, row in enumerate(matrix):
                out[k, i] = (row * vector).sum(axis=0) % np.uint64(prime)

    def adjoint_sums(self, matrix: Array, vectors: Array, out: Array, prime: int) -> None:
        for k, vector in enumerate(vectors.astype(np.uint64)):
            total = np.zeros(matrix.shape[1:], np.uint64)
            for row, entry in zip(matrix, vector, strict=True):
                total += row * entry
            out[k] = total % np.uint64(prime)


def _choose() -> LatticeLoops:
    try:
        from vertikal.secure.two_party.lattice import loops_compiled
    except ImportError:
        return NumpyLatticeLoops()
    return loops_compiled


LOOPS: LatticeLoops = _choose()
"""The loops that this installation uses: compiled if numba is there."""
