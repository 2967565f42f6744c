"""The compiled loops; imported only where numba is installed. See `phase_loops` for what they do.

Written so that the compiler vectorises the inner loop over directions: plain arithmetic on one row
(or four), single precision throughout, sums allowed to be reordered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from vertikal.kernels.cosine_polynomials import EVEN, ODD
from vertikal.ring.integers import ROUNDER

_S0, _S1, _S2, _S3, _S4 = (np.float32(value) for value in ODD)
_C0, _C1, _C2, _C3, _C4, _C5 = (np.float32(value) for value in EVEN)
_ROUNDER_BITS = np.float64(ROUNDER).view(np.uint64)
_HALF = np.float32(0.5)
_ROWS = 64  # at a time, by the same directions
_SUMS = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, inline="always", fastmath=_SUMS)
def _cosine(phase: Any, unit: Any) -> Any:
    # cos(πu) = sin(π(1/2 − |u|)), and 1/2 − |u| lies within ±1/2.
    v = _HALF - abs(np.float32(phase) * unit)
    s = v * v
    return v * (_S0 + s * (_S1 + s * (_S2 + s * (_S3 + s * _S4))))


@njit(cache=True, nogil=True, inline="always", fastmath=_SUMS)
def _cosine_and_sine(phase: Any, unit: Any) -> Any:
    # With v as above sin(π|u|) = cos(πv), and the sine of a negative angle is negative.
    u = np.float32(phase) * unit
    v = _HALF - abs(u)
    s = v * v
    cosine = v * (_S0 + s * (_S1 + s * (_S2 + s * (_S3 + s * _S4))))
    sine = _C0 + s * (_C1 + s * (_C2 + s * (_C3 + s * (_C4 + s * _C5))))
    return cosine, sine if u >= 0 else -sine


@njit(cache=True, nogil=True)
def wrap(steps: Any, bits: Any, offsets: Any, kept: Any, out: Any) -> Any:
    # ``bits`` is ``steps`` seen as integers. Within range the sum has one fixed exponent, so any
    # other exponent (too large, infinite, NaN) shows in the gathered differences.
    strange = np.uint64(0)
    rows, columns = steps.shape
    for i in range(rows):
        for j in range(columns):
            steps[i, j] = steps[i, j] + offsets[j] + ROUNDER
        for j in range(columns):
            strange |= bits[i, j] ^ _ROUNDER_BITS
            out[i, j] = (out[i, j] & kept) + bits[i, j]
    return strange >> np.uint64(52) == 0


def _as_integer(typing: Any, number: Any) -> Any:
    """The 64 bits of a double as an integer, without a way through memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), generate


_bits: Any = intrinsic(_as_integer)


@njit(cache=True, nogil=True)
def gather(block: Any, most: Any, cells: Any, places: Any, starts: Any) -> Any:
    # False if more than ``most`` cells are not zero. A cell is written before it is known to be
    # zero, and written over if it was: a branch that depends on the data would be foretold wrongly
    # too often.
    rows, columns = block.shape
    n = filled = 0
    for i in range(rows):
        begin = n
        for c in range(columns):
            cells[n] = block[i, c]
            places[n] = c
            n += block[i, c] != 0.0
        filled += n - begin
        if filled > most:
            return False
        n = _filled_up(n, cells, places)
        starts[i + 1] = n
    return True


@njit(cache=True, nogil=True)
def gather_sparse(
    data: Any, indices: Any, begins: Any, cells: Any, places: Any, starts: Any
) -> None:
    n = 0
    for i in range(len(begins) - 1):
        for k in range(begins[i], begins[i + 1]):
            cells[n] = data[k]
            places[n] = indices[k]
            n += 1
        n = _filled_up(n, cells, places)
        starts[i + 1] = n


@njit(cache=True, nogil=True, inline="always")
def _filled_up(n: Any, cells: Any, places: Any) -> Any:
    while n % 4:
        cells[n] = 0.0
        places[n] = 0
        n += 1
    return n


@njit(cache=True, nogil=True, fastmath={"contract"})
def project(
    cells: Any,
    places: Any,
    starts: Any,
    steps: Any,
    offsets: Any,
    room: Any,
    kept: Any,
    out: Any,
) -> Any:
    # Four cells at a time, so that the sums so far are read and written once for all four. The
    # first four start from the offsets, and the last four are rounded on the way to ``out``.
    # ``room`` (2, some directions) is read and written in turn: a loop that may write what it
    # reads is not vectorised. A few rows meet as many directions as it has, and then the next ones.
    strange = np.uint64(0)
    rows, width = out.shape
    for top in range(0, rows, _ROWS):
        for left in range(0, width, room.shape[1]):
            right = min(left + room.shape[1], width)
            for i in range(top, min(top + _ROWS, rows)):
                to = out[i, left:right]
                so_far = offsets[left:right]
                if starts[i] == starts[i + 1]:
                    for j in range(right - left):
                        t = so_far[j] + ROUNDER
                        strange |= _bits(t) ^ _ROUNDER_BITS
                        to[j] = (to[j] & kept) + _bits(t)
                    continue
                last = starts[i + 1] - 4
                for k in range(starts[i], last, 4):
                    v0, v1, v2, v3 = cells[k], cells[k + 1], cells[k + 2], cells[k + 3]
                    s0, s1 = steps[places[k], left:right], steps[places[k + 1], left:right]
                    s2, s3 = steps[places[k + 2], left:right], steps[places[k + 3], left:right]
                    row = room[(k // 4) % 2]
                    for j in range(right - left):
                        t = so_far[j] + v0 * s0[j] + v1 * s1[j]
                        row[j] = t + v2 * s2[j] + v3 * s3[j]
                    so_far = row
                v0, v1, v2, v3 = cells[last], cells[last + 1], cells[last + 2], cells[last + 3]
                s0, s1 = steps[places[last], left:right], steps[places[last + 1], left:right]
                s2, s3 = steps[places[last + 2], left:right], steps[places[last + 3], left:right]
                for j in range(right - left):
                    t = so_far[j] + v0 * s0[j] + v1 * s1[j]
                    t = t + v2 * s2[j] + v3 * s3[j]
                    t = t + ROUNDER
                    strange |= _bits(t) ^ _ROUNDER_BITS
                    to[j] = (to[j] & kept) + _bits(t)
    return strange >> np.uint64(52) == 0


@njit(cache=True, nogil=True, fastmath=_SUMS)
def decode(phases: Any, unit: Any, out: Any) -> None:
    rows, columns = phases.shape
    for i in range(rows):
        for j in range(columns):
            out[i, j] = _cosine(phases[i, j], unit)


@njit(cache=True, nogil=True, fastmath=_SUMS)
def forward(phases: Any, unit: Any, coefficients: Any, out: Any) -> None:
    rows, columns = phases.shape
    for i in range(rows):
        total = np.float32(0.0)
        for j in range(columns):
            total += coefficients[j] * _cosine(phases[i, j], unit)
        out[i] = total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def adjoint(phases: Any, unit: Any, residuals: Any, out: Any) -> None:
    rows, columns = phases.shape
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        a, b, c, d = residuals[i], residuals[i + 1], residuals[i + 2], residuals[i + 3]
        for j in range(columns):
            out[j] += (
                a * _cosine(phases[i, j], unit)
                + b * _cosine(phases[i + 1, j], unit)
                + c * _cosine(phases[i + 2, j], unit)
                + d * _cosine(phases[i + 3, j], unit)
            )
    for i in range(whole, rows):
        a = residuals[i]
        for j in range(columns):
            out[j] += a * _cosine(phases[i, j], unit)


@njit(cache=True, nogil=True, fastmath=_SUMS)
def decode_pair(phases: Any, unit: Any, out: Any, start: Any) -> None:
    rows, columns = phases.shape
    for i in range(rows):
        cosines = out[i, start : start + columns]
        sines = out[i, start + columns : start + 2 * columns]
        for j in range(columns):
            cosine, sine = _cosine_and_sine(phases[i, j], unit)
            cosines[j] = cosine
            sines[j] = sine


@njit(cache=True, nogil=True, fastmath=_SUMS)
def forward_pair(phases: Any, unit: Any, coefficients: Any, out: Any) -> None:
    rows, columns = phases.shape
    of_cosines, of_sines = coefficients[:columns], coefficients[columns:]
    for i in range(rows):
        total = np.float32(0.0)
        for j in range(columns):
            cosine, sine = _cosine_and_sine(phases[i, j], unit)
            total += of_cosines[j] * cosine + of_sines[j] * sine
        out[i] = total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def adjoint_pair(phases: Any, unit: Any, residuals: Any, out: Any) -> None:
    rows, columns = phases.shape
    whole = rows - rows % 4
    cosines, sines = out[:columns], out[columns:]
    for i in range(0, whole, 4):
        a, b, c, d = residuals[i], residuals[i + 1], residuals[i + 2], residuals[i + 3]
        for j in range(columns):
            ca, sa = _cosine_and_sine(phases[i, j], unit)
            cb, sb = _cosine_and_sine(phases[i + 1, j], unit)
            cc, sc = _cosine_and_sine(phases[i + 2, j], unit)
            cd, sd = _cosine_and_sine(phases[i + 3, j], unit)
            cosines[j] += a * ca + b * cb + c * cc + d * cd
            sines[j] += a * sa + b * sb + c * sc + d * sd
    for i in range(whole, rows):
        a = residuals[i]
        for j in range(columns):
            cosine, sine = _cosine_and_sine(phases[i, j], unit)
            cosines[j] += a * cosine
            sines[j] += a * sine
