"""Products of a matrix of ring elements with vectors, and the loops that combine cosines.

Everything is exact arithmetic mod 2^w, so numpy, machine code and any number of threads give the
same elements. ``w`` is 32 or 64; one pass reads the matrix once, whatever the number of vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.reused_memory import aligned, aligned_empty
from vertikal.ring.wide_numbers import DROPPED, Halves, joined
from vertikal.side_by_side import cores, side_by_side

Array = npt.NDArray[Any]

HEIGHT = 2048
"""Rows per task."""


class RingLoops(Protocol):
    """The inner loops; all arrays C-ordered, all of one dtype but the indices."""

    def times(self, matrix: Array, vectors: Array, out: Array) -> None:
        """out (rows, k) = matrix (rows, width) @ vectors.T, vectors (k, width)."""

    def transposed(self, matrix: Array, vectors: Array, out: Array) -> None:
        """out (k, width) += vectors.T (k, rows) @ matrix, vectors (rows, k)."""

    def rotate(self, phases: Array, cos: Array, sin: Array, c: Array, s: Array) -> None:
        """c ← cos[phases]·c + sin[phases]·s, in place."""

    def rotate_pair(
        self, phases: Array, cos: Array, sin: Array, c: Array, s: Array, out: Array
    ) -> None:
        """out (rows, 2·width): cos[phases]·c + sin[phases]·s | sin[phases]·c − cos[phases]·s."""

    def take_off(self, phases: Array, table: Array, share: Array) -> None:
        """share ← table[phases] − share, in place."""

    def rotate_wide(
        self, phases: Array, cos: Array, sin: Array, c: Halves, s: Halves, out: Array
    ) -> None:
        """out (rows, width) or (rows, 2·width): as `rotate` or `rotate_pair`, of wide numbers.

        Their last `DROPPED` bits are rounded away, so that 32 remain (`wide_numbers`).
        """

    def take_off_wide(self, phases: Array, table: Array, share: Halves) -> None:
        """share ← table[phases] − share, in place, of wide numbers."""


class NumpyRingLoops:
    """The loops in numpy."""

    def times(self, matrix: Array, vectors: Array, out: Array) -> None:
        np.matmul(matrix, vectors.T, out=out)

    def transposed(self, matrix: Array, vectors: Array, out: Array) -> None:
        out += vectors.T @ matrix

    def rotate(self, phases: Array, cos: Array, sin: Array, c: Array, s: Array) -> None:
        c *= cos[phases]
        c += sin[phases] * s

    def rotate_pair(
        self, phases: Array, cos: Array, sin: Array, c: Array, s: Array, out: Array
    ) -> None:
        cosines, sines = np.hsplit(out, 2)
        at_cos, at_sin = cos[phases], sin[phases]
        np.multiply(at_cos, c, out=cosines)
        cosines += at_sin * s
        np.multiply(at_sin, c, out=sines)
        sines -= at_cos * s

    def take_off(self, phases: Array, table: Array, share: Array) -> None:
        np.subtract(table[phases], share, out=share)

    def rotate_wide(
        self, phases: Array, cos: Array, sin: Array, c: Halves, s: Halves, out: Array
    ) -> None:
        width, at_cos, at_sin = phases.shape[1], cos[phases], sin[phases]
        c_whole, s_whole = joined(c), joined(s)
        out[:, :width] = _narrow(at_cos * c_whole + at_sin * s_whole)
        if out.shape[1] > width:
            out[:, width:] = _narrow(at_sin * c_whole - at_cos * s_whole)

    def take_off_wide(self, phases: Array, table: Array, share: Halves) -> None:
        low, high = share
        difference = table[phases] - joined(share)
        low[...] = difference  # the bits that fit
        high[...] = difference >> np.uint64(32)


def _narrow(wide: Array) -> Array:
    """Round wide numbers to 32 bits, half up."""
    half, dropped = np.uint64(1 << (DROPPED - 1)), np.uint64(DROPPED)
    return ((wide + half) >> dropped).astype(np.uint32)


def _choose() -> RingLoops:
    try:
        from vertikal.ring import products_compiled
    except ImportError:
        return NumpyRingLoops()
    return products_compiled


LOOPS: RingLoops = _choose()
"""The loops that this installation uses: compiled if numba is there."""


def times(matrix: Array, vectors: Array, loops: RingLoops | None = None) -> Array:
    """matrix (rows, width) @ vectors (width, k) in the ring: (rows, k)."""
    loops = loops or LOOPS
    matrix, across = np.ascontiguousarray(matrix), aligned(vectors.T)
    out = np.empty((len(matrix), len(across)), matrix.dtype)
    _each_block(len(matrix), lambda rows: loops.times(matrix[rows], across, out[rows]))
    return out


def transposed(matrix: Array, vectors: Array, loops: RingLoops | None = None) -> Array:
    """matrix.T (width, rows) @ vectors (rows, k) in the ring: (width, k)."""
    loops = loops or LOOPS
    matrix, vectors = np.ascontiguousarray(matrix), np.ascontiguousarray(vectors)
    parts: dict[int, Array] = {}

    def work(rows: slice) -> None:
        part = aligned_empty((vectors.shape[1], matrix.shape[1]), matrix.dtype)
        part[...] = 0
        loops.transposed(matrix[rows], vectors[rows], part)
        parts[rows.start] = part

    _each_block(len(matrix), work)
    total = np.zeros((vectors.shape[1], matrix.shape[1]), matrix.dtype)
    for part in parts.values():
        total += part
    return np.ascontiguousarray(total.T)


def _each_block(rows: int, work: Callable[[slice], None]) -> None:
    """Run ``work`` on blocks of rows, side by side on the cores of this machine."""
    blocks = [slice(i, min(i + HEIGHT, rows)) for i in range(0, rows, HEIGHT)]
    side_by_side(work, blocks, cores())
