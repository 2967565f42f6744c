"""Inner products of one client's rows as ring elements, of which none travels twice.

The kernel matrix is symmetric, so a tile on the diagonal is written as the entries on and above it,
row by row. These are pure functions of arrays, and need neither SciPy nor a `Party`: a device has
them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import RingError
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

RINGS = (16, 32, 64)

_HEIGHT = 256
"""Rows of a tile whose products a device holds in 64 bits at a time."""


def smallest_ring(columns: int, largest: int) -> Ring:
    """Return the smallest of Z_{2^16}, Z_{2^32}, Z_{2^64} that holds every entry of the kernel."""
    bound = columns * largest**2
    for bits in RINGS:
        if bound < 2 ** (bits - 1):
            return Ring(bits)
    raise RingError(
        f"kernel: {columns} columns of up to {largest} give inner products up to {bound}, beyond "
        "64 bits; divide the columns"
    )


def packed_products(block: Array, ring: Ring) -> Array:
    """Compute X Xᵀ on and above the diagonal, row by row: (rows·(rows + 1)/2,) ring elements."""
    rows = block.shape[0]
    packed = np.zeros(rows * (rows + 1) // 2, ring.dtype)
    starts = np.cumsum([0, *range(rows, 0, -1)])
    for i in np.flatnonzero(block.any(axis=1)):
        # In 64 bits numbers wrap exactly as the ring does.
        products = block[i:] @ block[i]
        packed[starts[i] : starts[i + 1]] = products.astype(ring.dtype)
    return packed


def unpacked(total: Array, rows: int, ring: Ring) -> Array:
    """Rebuild the symmetric matrix (rows, rows) int64 that `packed_products` halved."""
    values = np.zeros((rows, rows), np.int64)
    upper = np.triu_indices(rows)
    values[upper] = total.view(f"int{ring.bits}")
    values.T[upper] = values[upper]
    return values


def packed_tile(left: Array, right: Array | None, ring: Ring) -> Array:
    """Compute X Zᵀ of a tile as a vector; without ``right`` the tile is on the diagonal.

    ``left`` (rows, columns) and ``right`` (others, columns) are whole numbers.
    """
    if right is None:
        return packed_products(left, ring)
    values = np.empty((left.shape[0], right.shape[0]), ring.dtype)
    for start in range(0, left.shape[0], _HEIGHT):
        # In 64 bits numbers wrap exactly as the ring does.
        values[start : start + _HEIGHT] = left[start : start + _HEIGHT] @ right.T
    return values.ravel()


def packed_length(rows: int, others: int, diagonal: bool) -> int:
    """Count the ring elements of a tile."""
    return rows * (rows + 1) // 2 if diagonal else rows * others
