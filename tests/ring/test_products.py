"""Products mod 2^w against Python's integers; numpy and machine code agree to the last bit."""

from __future__ import annotations

import builtins
import importlib.util
import math
import os
import threading

import numpy as np
import pytest

from tests.naive.hidden import product, rounded_share, table, transpose
from vertikal.ring import products
from vertikal.ring.products import HEIGHT, LOOPS, NumpyRingLoops, times, transposed
from vertikal.ring.wide_numbers import halves, joined, wide_shape

every_loops = pytest.mark.parametrize(
    "loops", [LOOPS, NumpyRingLoops()], ids=["installed", "numpy"]
)
every_word = pytest.mark.parametrize("dtype", ["uint32", "uint64"])


def words(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(
        0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True
    )


@every_loops
@every_word
@pytest.mark.parametrize(
    ("rows", "width", "k"), [(1, 1, 1), (5, 3, 1), (7, 4, 3), (4, 9, 2), (5, 6, 9), (8, 3, 4)]
)
def test_products_are_those_of_integers(loops, dtype, rows, width, k):
    matrix, right, left = (
        words(shape, dtype, i) for i, shape in enumerate([(rows, width), (width, k), (rows, k)])
    )
    bits = np.iinfo(dtype).bits
    forward, back = times(matrix, right, loops), transposed(matrix, left, loops)
    assert forward.dtype == back.dtype == dtype
    assert forward.tolist() == product(matrix.tolist(), right.tolist(), bits)
    assert back.tolist() == product(transpose(matrix.tolist()), left.tolist(), bits)


@every_word
def test_many_blocks_on_any_number_of_threads(dtype, monkeypatch):
    matrix, right = words((5000, 8), dtype), words((8, 2), dtype, 1)
    left = words((5000, 2), dtype, 2)
    expected = matrix @ right, matrix.T @ left
    for threads in (1, 3):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, threads=threads: range(threads))
        assert np.array_equal(times(matrix, right), expected[0])
        assert np.array_equal(transposed(matrix, left), expected[1])


def test_parts_of_a_matrix_need_not_be_contiguous():
    matrix, right = words((50, 9), "uint64"), words((4, 1), "uint64", 1)
    assert np.array_equal(times(matrix[:, 3:7], right), times(matrix[:, 3:7].copy(), right))
    left = words((50, 1), "uint64", 2)
    assert np.array_equal(transposed(matrix[:, 3:7], left), transposed(matrix, left)[3:7])


@every_loops
@every_word
@pytest.mark.parametrize("phase", ["uint8", "uint16"])
def test_the_loops_over_cosines(loops, dtype, phase):
    bits = np.iinfo(phase).bits
    cos = np.array(table(9, bits), np.int64).astype(dtype)
    sin = words(cos.shape, dtype, 5)
    phases = words((6, 5), phase)
    c, s = words((6, 5), dtype, 1), words((6, 5), dtype, 2)
    rotated, taken, pairs = c.copy(), c.copy(), np.empty((6, 10), dtype)
    loops.rotate(phases, cos, sin, rotated, s.copy())
    loops.take_off(phases, cos, taken)
    loops.rotate_pair(phases, cos, sin, c, s, pairs)
    modulus = 2 ** np.iinfo(dtype).bits
    for at in np.ndindex(phases.shape):
        m, one, two = int(phases[at]), int(c[at]), int(s[at])
        assert int(rotated[at]) == (int(cos[m]) * one + int(sin[m]) * two) % modulus
        assert int(taken[at]) == (int(cos[m]) - one) % modulus
        assert int(pairs[at]) == int(rotated[at])
        turned = int(sin[m]) * one - int(cos[m]) * two
        assert int(pairs[at[0], 5 + at[1]]) == turned % modulus


@every_loops
@pytest.mark.parametrize("phase", ["uint8", "uint16"])
def test_the_loops_over_wide_cosines(loops, phase):
    bits = np.iinfo(phase).bits
    cos, sin = (
        np.array(table(8, bits, f), np.int64).astype(np.uint64) for f in (math.cos, math.sin)
    )
    phases = words((6, 5), phase)
    c, s = words(wide_shape((6, 5)), "uint8", 1), words(wide_shape((6, 5)), "uint8", 2)
    whole = [joined(halves(one)) for one in (c, s)]
    taken = c.copy()
    loops.take_off_wide(phases, cos, halves(taken))
    rotated, pairs = np.empty((6, 5), np.uint32), np.empty((6, 10), np.uint32)
    loops.rotate_wide(phases, cos, sin, halves(c), halves(s), rotated)
    loops.rotate_wide(phases, cos, sin, halves(c), halves(s), pairs)
    for at in np.ndindex(phases.shape):
        m = int(phases[at])
        x, y = (round(f(2 * math.pi * m / 2**bits) * 2**8) for f in (math.cos, math.sin))
        one, two = (int(word[at]) for word in whole)
        assert int(joined(halves(taken))[at]) == (x - one) % 2**40
        assert int(rotated[at]) == int(pairs[at]) == rounded_share((x * one + y * two) % 2**40)
        assert int(pairs[at[0], 5 + at[1]]) == rounded_share((y * one - x * two) % 2**40)


def test_without_numba_numpy_does_it(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if "products_compiled" in str(args[2:3]) or name == "numba":
            raise ImportError(name)
        return real(name, *args, **options)

    spec = importlib.util.spec_from_file_location("products_again", products.__file__)
    again = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(builtins, "__import__", without)
    spec.loader.exec_module(again)
    assert isinstance(again.LOOPS, again.NumpyRingLoops)


class Together(NumpyRingLoops):
    """Loops that go on only when so many threads are in them at the same time."""

    def __init__(self, threads):
        self.met, self.threads = threading.Barrier(threads), set()

    def times(self, matrix, vectors, out):
        self.met.wait(20.0)
        self.threads.add(threading.get_ident())
        super().times(matrix, vectors, out)


@pytest.mark.parametrize("affinity", [True, False])
def test_all_cores_work_at_once(monkeypatch, affinity):
    if affinity:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5}, raising=False)
    else:
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        monkeypatch.setattr(os, "cpu_count", lambda: 3)
    matrix, right, loops = words((3 * HEIGHT, 2), "uint64"), words((2, 1), "uint64"), Together(3)
    assert np.array_equal(times(matrix, right, loops), times(matrix, right))
    assert len(loops.threads) == 3


def test_a_machine_that_does_not_tell_its_cores_has_one(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    matrix, right, loops = words((3 * HEIGHT, 2), "uint64"), words((2, 1), "uint64"), Together(1)
    assert np.array_equal(times(matrix, right, loops), times(matrix, right))
    assert loops.threads == {threading.get_ident()}
