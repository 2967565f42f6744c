"""The compiled loops over residues; imported only where numba is installed.

See `loops` for what they compute. Between the steps of a transform values are left unreduced: a
factor below p is multiplied in with a result below 2p whatever the other (Shoup's way), a step
adds 2p at most, and thirteen steps stay below 2^32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def transform(values: Any, roots: Any, ratios: Any, prime: Any) -> None:  # pragma: no cover
    p, inverse = np.uint64(prime), 1.0 / prime
    twice = np.uint64(2) * p
    degree = values.shape[1]
    for i in range(values.shape[0]):
        row = values[i]
        length, blocks = degree // 2, 1
        while length:
            for block in range(blocks):
                root, ratio = np.uint64(roots[blocks + block]), np.uint64(ratios[blocks + block])
                start = 2 * block * length
                low, high = row[start : start + length], row[start + length : start + 2 * length]
                for j in range(length):
                    x, y = np.uint64(low[j]), np.uint64(high[j])
                    y = y * root - ((y * ratio) >> np.uint64(32)) * p
                    low[j] = np.uint32(x + y)
                    high[j] = np.uint32(x + twice - y)
            length, blocks = length // 2, 2 * blocks
        for j in range(degree):
            x = np.uint64(row[j])
            row[j] = np.uint32(_reduced(x, p, inverse))


@njit(cache=True, nogil=True)
def back(values: Any, roots: Any, ratios: Any, scale: Any, prime: Any) -> None:  # pragma: no cover
    p, inverse, factor = np.uint64(prime), 1.0 / prime, np.uint64(scale)
    degree = values.shape[1]
    # The first half of a pair doubles in every step, and is reduced before it could wrap.
    for i in range(values.shape[0]):
        row = values[i]
        length, blocks = 1, degree // 2
        bound = p
        while blocks:
            for block in range(blocks):
                root, ratio = np.uint64(roots[blocks + block]), np.uint64(ratios[blocks + block])
                start = 2 * block * length
                low, high = row[start : start + length], row[start + length : start + 2 * length]
                for j in range(length):
                    x, y = np.uint64(low[j]), np.uint64(high[j])
                    low[j] = np.uint32(x + y)
                    y = x + bound - y
                    high[j] = np.uint32(y * root - ((y * ratio) >> np.uint64(32)) * p)
            length, blocks = 2 * length, blocks // 2
            bound = np.uint64(2) * bound
            if bound >= np.uint64(1 << 30):
                for j in range(degree):
                    row[j] = np.uint32(_reduced(np.uint64(row[j]), p, inverse))
                bound = p
        for j in range(degree):
            x = _reduced(np.uint64(row[j]), p, inverse)
            row[j] = np.uint32(_reduced(x * factor, p, inverse))


@njit(cache=True, nogil=True)
def multiply_add(a: Any, b: Any, c: Any, out: Any, prime: Any) -> None:  # pragma: no cover
    p, inverse = np.uint64(prime), 1.0 / prime
    for i in range(a.shape[0]):
        x, y, z, to = a[i], b[i if b.shape[0] > 1 else 0], c[i], out[i]
        for j in range(a.shape[1]):
            total = np.uint64(x[j]) * np.uint64(y[j]) + np.uint64(z[j])
            to[j] = np.uint32(_reduced(total, p, inverse))


@njit(cache=True, nogil=True)
def reduce(words: Any, out: Any, prime: Any) -> None:  # pragma: no cover
    p, inverse = np.uint64(prime), 1.0 / prime
    fold = np.uint64((1 << 32) % prime)
    low = np.uint64((1 << 32) - 1)
    for i in range(words.shape[0]):
        for j in range(words.shape[1]):
            word = words[i, j]
            top = _reduced(word >> np.uint64(32), p, inverse)
            out[i, j] = np.uint32(_reduced(top * fold + (word & low), p, inverse))


@njit(cache=True, nogil=True)
def add_fractions(values: Any, factor: Any, total: Any, prime: Any) -> None:  # pragma: no cover
    p, inverse, times = np.uint64(prime), 1.0 / prime, np.uint64(factor)
    digit = np.uint64(28)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            # Below 2^52 all of them, and whole quotients follow from remainders.
            x = _reduced(np.uint64(values[i, j]) * times, p, inverse) << digit
            rest = _reduced(x, p, inverse)
            y = rest << digit
            upper = np.uint64(np.float64(x - rest) * inverse + 0.5)
            lower = np.uint64(np.float64(y - _reduced(y, p, inverse)) * inverse + 0.5)
            total[i, j] += ((upper << digit) + lower) << np.uint64(8)


@njit(cache=True, nogil=True)
def forward_sums(matrix: Any, vectors: Any, out: Any, prime: Any) -> None:  # pragma: no cover
    p, inverse = np.uint64(prime), 1.0 / prime
    rows, columns, degree = matrix.shape
    count = vectors.shape[0]
    totals = np.empty((count, degree), np.uint64)
    for i in range(rows):
        totals[:] = np.uint64(0)
        for c in range(columns):
            entries = matrix[i, c]
            for k in range(count):
                total, vector = totals[k], vectors[k, c]
                for j in range(degree):
                    total[j] += np.uint64(entries[j]) * np.uint64(vector[j])
        for k in range(count):
            for j in range(degree):
                out[k, i, j] = np.uint32(_reduced_long(totals[k, j], p, inverse))


@njit(cache=True, nogil=True)
def adjoint_sums(matrix: Any, vectors: Any, out: Any, prime: Any) -> None:  # pragma: no cover
    p, inverse = np.uint64(prime), 1.0 / prime
    rows, columns, degree = matrix.shape
    count = vectors.shape[0]
    totals = np.empty((count, degree), np.uint64)
    for c in range(columns):
        totals[:] = np.uint64(0)
        for i in range(rows):
            entries = matrix[i, c]
            for k in range(count):
                total, vector = totals[k], vectors[k, i]
                for j in range(degree):
                    total[j] += np.uint64(entries[j]) * np.uint64(vector[j])
        for k in range(count):
            for j in range(degree):
                out[k, c, j] = np.uint32(_reduced_long(totals[k, j], p, inverse))


@njit(cache=True, nogil=True, inline="always")
def _reduced(x: Any, p: Any, inverse: Any) -> Any:  # pragma: no cover
    """Reduce x below 2^52."""
    quotient = np.uint64(np.float64(x) * inverse)
    rest = np.int64(x) - np.int64(quotient * p)
    if rest < 0:
        rest += np.int64(p)
    if rest >= np.int64(p):
        rest -= np.int64(p)
    return np.uint64(rest)


@njit(cache=True, nogil=True, inline="always")
def _reduced_long(x: Any, p: Any, inverse: Any) -> Any:  # pragma: no cover
    """Reduce any x below 2^64."""
    fold = np.uint64(1 << 32) % p
    top = _reduced(x >> np.uint64(32), p, inverse)
    return _reduced(top * fold + (x & np.uint64((1 << 32) - 1)), p, inverse)
