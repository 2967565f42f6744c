"""A matrix that comes in blocks, and its products, against plain integers."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.ring.ring_matrix import RingMatrix

GENERATOR = np.random.default_rng(0)
ROWS, WIDTH = 23, 11


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_products_of_blocks(dtype):
    top = np.iinfo(dtype).max
    values = GENERATOR.integers(0, top, (ROWS, WIDTH), dtype, endpoint=True)
    matrix = RingMatrix((ROWS, WIDTH), dtype)
    assert matrix.nbytes == values.nbytes
    for start in (10, 20, 0):  # in whatever order
        rows = slice(start, min(start + 10, ROWS))
        with matrix.writing(rows) as room:
            room[...] = values[rows]
    a = GENERATOR.integers(0, top, (WIDTH, 2), dtype, endpoint=True)
    r = GENERATOR.integers(0, top, (ROWS, 2), dtype, endpoint=True)
    np.testing.assert_array_equal(matrix.product("forward", a), values @ a)
    np.testing.assert_array_equal(matrix.product("adjoint", r), values.T @ r)
    assert matrix.sizes("forward") == (WIDTH, ROWS)
    assert matrix.sizes("adjoint") == (ROWS, WIDTH)

    def part(whole):
        return whole[np.array([4, 0]), 2:7]

    np.testing.assert_array_equal(matrix.product("forward", a[2:7], part), part(values) @ a[2:7])
    np.testing.assert_array_equal(matrix.product("adjoint", r[:2], part), part(values).T @ r[:2])
    assert matrix.sizes("forward", part) == (5, 2)
