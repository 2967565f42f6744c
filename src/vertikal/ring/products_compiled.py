"""The compiled loops over ring elements; imported only where numba is installed.

See `products` for what they compute. Unsigned integers wrap, so the compiler may reorder and
vectorise the sums as it likes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from vertikal.ring.wide_numbers import DROPPED

_HALF, _DROPPED = np.uint64(1 << (DROPPED - 1)), np.uint64(DROPPED)
_WORD = np.uint64(32)


@njit(cache=True, nogil=True)
def times(matrix: Any, vectors: Any, out: Any) -> None:  # pragma: no cover
    # Cast back at once: numba would widen a sum of 32 bits, and halve the speed.
    word = matrix.dtype.type
    rows, width = matrix.shape
    count = vectors.shape[0]
    fours = count - count % 4
    pairs = rows - rows % 2 if fours else 0
    # Two rows meet four vectors, so that six numbers are read for eight products.
    for i in range(0, pairs, 2):
        for o in range(0, fours, 4):
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = word(0)
            for j in range(width):
                a, b = matrix[i, j], matrix[i + 1, j]
                p, q, r, s = vectors[o, j], vectors[o + 1, j], vectors[o + 2, j], vectors[o + 3, j]
                a0 = word(a0 + word(a * p))
                a1 = word(a1 + word(a * q))
                a2 = word(a2 + word(a * r))
                a3 = word(a3 + word(a * s))
                b0 = word(b0 + word(b * p))
                b1 = word(b1 + word(b * q))
                b2 = word(b2 + word(b * r))
                b3 = word(b3 + word(b * s))
            out[i, o], out[i, o + 1], out[i, o + 2], out[i, o + 3] = a0, a1, a2, a3
            out[i + 1, o], out[i + 1, o + 1], out[i + 1, o + 2], out[i + 1, o + 3] = b0, b1, b2, b3
    for i in range(rows):
        for o in range(fours if i < pairs else 0, count):
            total = word(0)
            for j in range(width):
                total = word(total + word(matrix[i, j] * vectors[o, j]))
            out[i, o] = total


@njit(cache=True, nogil=True)
def transposed(matrix: Any, vectors: Any, out: Any) -> None:  # pragma: no cover
    rows, width = matrix.shape
    whole = rows - rows % 4
    # Four rows stay in the cache while they serve all vectors.
    for i in range(0, whole, 4):
        for o in range(vectors.shape[1]):
            a, b = vectors[i, o], vectors[i + 1, o]
            c, d = vectors[i + 2, o], vectors[i + 3, o]
            for j in range(width):
                out[o, j] += (
                    a * matrix[i, j]
                    + b * matrix[i + 1, j]
                    + c * matrix[i + 2, j]
                    + d * matrix[i + 3, j]
                )
    for i in range(whole, rows):
        for o in range(vectors.shape[1]):
            a = vectors[i, o]
            for j in range(width):
                out[o, j] += a * matrix[i, j]


@njit(cache=True, nogil=True)
def rotate(phases: Any, cos: Any, sin: Any, c: Any, s: Any) -> None:  # pragma: no cover
    rows, width = phases.shape
    for i in range(rows):
        for j in range(width):
            m = phases[i, j]
            c[i, j] = cos[m] * c[i, j] + sin[m] * s[i, j]


@njit(cache=True, nogil=True)
def rotate_pair(
    phases: Any, cos: Any, sin: Any, c: Any, s: Any, out: Any
) -> None:  # pragma: no cover
    rows, width = phases.shape
    for i in range(rows):
        for j in range(width):
            m = phases[i, j]
            out[i, j] = cos[m] * c[i, j] + sin[m] * s[i, j]
            out[i, width + j] = sin[m] * c[i, j] - cos[m] * s[i, j]


@njit(cache=True, nogil=True)
def take_off(phases: Any, table: Any, share: Any) -> None:  # pragma: no cover
    rows, width = phases.shape
    for i in range(rows):
        for j in range(width):
            share[i, j] = table[phases[i, j]] - share[i, j]


@njit(cache=True, nogil=True)
def rotate_wide(
    phases: Any, cos: Any, sin: Any, c: Any, s: Any, out: Any
) -> None:  # pragma: no cover
    rows, width = phases.shape
    pairs = out.shape[1] > width
    for i in range(rows):
        for j in range(width):
            m = phases[i, j]
            one = np.uint64(c[0][i, j]) | (np.uint64(c[1][i, j]) << _WORD)
            two = np.uint64(s[0][i, j]) | (np.uint64(s[1][i, j]) << _WORD)
            out[i, j] = np.uint32((cos[m] * one + sin[m] * two + _HALF) >> _DROPPED)
            if pairs:
                turned = sin[m] * one - cos[m] * two
                out[i, width + j] = np.uint32((turned + _HALF) >> _DROPPED)


@njit(cache=True, nogil=True)
def take_off_wide(phases: Any, table: Any, share: Any) -> None:  # pragma: no cover
    rows, width = phases.shape
    low, high = share
    for i in range(rows):
        for j in range(width):
            whole = np.uint64(low[i, j]) | (np.uint64(high[i, j]) << _WORD)
            whole = table[phases[i, j]] - whole
            low[i, j] = np.uint32(whole)
            high[i, j] = np.uint8(whole >> _WORD)
