"""The hot loops: NumPy and compiled agree, and both say what the plain formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertikal.kernels.phase_loops import LOOPS, CompiledLoops, NumpyLoops
from vertikal.ring.integers import LIMIT

numba = pytest.importorskip("numba")

BOTH = [NumpyLoops(), CompiledLoops()]
RINGS = [np.uint8, np.uint16, np.uint32]
SIZES = [(0, 5), (1, 1), (3, 7), (4, 16), (5, 33), (257, 31)]


def wrapped(loops, steps, offsets, dtype):
    out = np.zeros(np.shape(steps), dtype)
    good = loops.wrap(np.array(steps, np.float64), np.array(offsets, np.float64), out)
    return good, out


def phases_of(shape, dtype, seed=0):
    generator = np.random.default_rng(seed)
    return generator.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def exact_cosines(phases):
    return np.cos(phases.astype(np.float64) * (2 * math.pi / 256**phases.itemsize))


def exact_pairs(phases):
    angles = phases.astype(np.float64) * (2 * math.pi / 256**phases.itemsize)
    return np.hstack((np.cos(angles), np.sin(angles)))


def test_this_installation_compiles():
    assert isinstance(LOOPS, CompiledLoops)


@pytest.mark.parametrize("loops", BOTH)
@pytest.mark.parametrize("dtype", RINGS)
def test_wrap_rounds_half_to_even_as_python_does(loops, dtype):
    size = int(np.iinfo(dtype).max) + 1
    numbers = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 254.5, 255.5, 256.5]
    numbers += [size - 0.5, size + 0.5, -size - 0.5, size * 3.0, 1e15 + 0.5, -1e15 - 0.5]
    numbers += [2.0**50 + 0.5, 2.0**51 - 1, 1 - 2.0**51]
    good, out = wrapped(loops, [numbers], [0.0] * len(numbers), dtype)
    assert good
    assert out.tolist() == [[round(number) % size for number in numbers]]


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(
        st.one_of(
            st.floats(-(2.0**50), 2.0**50),
            st.integers(-(2**30), 2**30).map(lambda n: n / 2),
        ),
        min_size=1,
        max_size=40,
    ),
    offset=st.integers(0, 2**32 - 1),
    ring=st.sampled_from(RINGS),
)
def test_wrap_gives_the_same_bits_in_both(steps, offset, ring):
    offsets = [float(offset)] * len(steps)
    results = [wrapped(loops, [steps], offsets, ring) for loops in BOTH]
    size = int(np.iinfo(ring).max) + 1
    expected = [[round(step + offset) % size for step in steps]]
    for good, out in results:
        assert good
        assert out.tolist() == expected


@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("shape", SIZES)
def test_wrap_at_odd_sizes(dtype, shape):
    generator = np.random.default_rng(2)
    steps, offsets = generator.normal(0, 1e4, shape), generator.random(shape[1]) * 256
    (one, first), (two, second) = (wrapped(loops, steps, offsets, dtype) for loops in BOTH)
    assert one
    assert two
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, np.rint(steps + offsets).astype(np.int64).astype(dtype))


@pytest.mark.parametrize("loops", BOTH)
@pytest.mark.parametrize("dtype", RINGS)
def test_phases_are_added_to_what_is_there(loops, dtype):
    generator = np.random.default_rng(2)
    steps, offsets = generator.normal(0, 1e4, (5, 33)), generator.random(33) * 256
    there = phases_of((5, 33), dtype)
    found = there.copy()
    assert loops.wrap(steps.copy(), offsets, found, added=True)
    np.testing.assert_array_equal(found, there + wrapped(loops, steps, offsets, dtype)[1])


@pytest.mark.parametrize("loops", BOTH)
@pytest.mark.parametrize(
    "bad", [np.nan, np.inf, -np.inf, LIMIT, -LIMIT - 0.5, 2 * LIMIT, -4 * LIMIT, 1e300, -1e300]
)
@pytest.mark.parametrize("place", [(0, 0), (4, 2)])
def test_wrap_refuses_what_has_no_phase(loops, bad, place):
    steps = np.ones((5, 3))
    steps[place] = bad
    assert wrapped(loops, steps, np.zeros(3), np.uint8)[0] is False


@pytest.mark.parametrize("edge", [LIMIT - 0.5, LIMIT - 1, -LIMIT, 0.5 - LIMIT, 1 - LIMIT])
def test_both_draw_the_line_at_the_same_number(edge):
    answers = {wrapped(loops, [[edge]], [0.0], np.uint8)[0] for loops in BOTH}
    assert len(answers) == 1


@pytest.mark.parametrize("loops", BOTH)
def test_an_offset_can_push_over_the_limit(loops):
    assert not wrapped(loops, [[LIMIT - 10]], [250.0], np.uint8)[0]
    assert wrapped(loops, [[LIMIT - 1000]], [250.0], np.uint8)[0]


@pytest.mark.parametrize("loops", BOTH)
@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("shape", SIZES)
def test_decode_is_the_cosine(loops, dtype, shape):
    phases = phases_of(shape, dtype)
    out = np.full(shape, np.nan, np.float32)
    loops.decode(phases, out)
    np.testing.assert_allclose(out, exact_cosines(phases), atol=3e-7, rtol=0)


@pytest.mark.parametrize("loops", BOTH)
@pytest.mark.parametrize("dtype", RINGS)
def test_decode_at_the_corners(loops, dtype):
    quarter = (int(np.iinfo(dtype).max) + 1) // 4
    out = np.empty((1, 4), np.float32)
    loops.decode(np.array([[0, quarter, 2 * quarter, 3 * quarter]], dtype), out)
    np.testing.assert_allclose(out, [[1, 0, -1, 0]], atol=2e-7)


@pytest.mark.parametrize("loops", BOTH)
@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("shape", SIZES)
def test_forward_and_adjoint_against_double_precision(loops, dtype, shape):
    generator = np.random.default_rng(4)
    phases = phases_of(shape, dtype)
    coefficients = generator.normal(size=shape[1]).astype(np.float32)
    residuals = generator.normal(size=shape[0]).astype(np.float32)
    values = np.full(shape[0], np.nan, np.float32)
    loops.forward(phases, coefficients, values)
    expected = exact_cosines(phases) @ coefficients.astype(float)
    np.testing.assert_allclose(values, expected, atol=1e-5)
    # The adjoint adds to what is there.
    gathered = np.full(shape[1], 3.0, np.float32)
    loops.adjoint(phases, residuals, gathered)
    expected = 3.0 + exact_cosines(phases).T @ residuals.astype(float)
    np.testing.assert_allclose(gathered, expected, atol=2e-5)


@pytest.mark.parametrize("loops", BOTH)
@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("shape", SIZES)
def test_decode_pair_is_cosine_and_sine_in_their_columns(loops, dtype, shape):
    phases, width = phases_of(shape, dtype), shape[1]
    out = np.full((shape[0], 2 * width + 3), 7.0, np.float32)
    loops.decode_pair(phases, out, 2)
    np.testing.assert_allclose(out[:, 2:-1], exact_pairs(phases), atol=3e-7, rtol=0)
    assert (out[:, :2] == 7).all()
    assert (out[:, -1] == 7).all()


@pytest.mark.parametrize("loops", BOTH)
def test_decode_pair_at_every_byte(loops):
    phases = np.arange(256, dtype=np.uint8)[None, :]
    out = np.empty((1, 512), np.float32)
    loops.decode_pair(phases, out, 0)
    np.testing.assert_allclose(out, exact_pairs(phases), atol=2e-7, rtol=0)


@pytest.mark.parametrize("loops", BOTH)
@pytest.mark.parametrize("dtype", RINGS)
@pytest.mark.parametrize("shape", SIZES)
def test_products_with_pairs_against_double_precision(loops, dtype, shape):
    generator = np.random.default_rng(4)
    phases = phases_of(shape, dtype)
    coefficients = generator.normal(size=2 * shape[1]).astype(np.float32)
    residuals = generator.normal(size=shape[0]).astype(np.float32)
    values = np.full(shape[0], np.nan, np.float32)
    loops.forward_pair(phases, coefficients, values)
    expected = exact_pairs(phases) @ coefficients.astype(float)
    np.testing.assert_allclose(values, expected, atol=2e-5)
    # The adjoint adds to what is there.
    gathered = np.full(2 * shape[1], 3.0, np.float32)
    loops.adjoint_pair(phases, residuals, gathered)
    expected = 3.0 + exact_pairs(phases).T @ residuals.astype(float)
    np.testing.assert_allclose(gathered, expected, atol=3e-5)


def test_numpy_loops_do_not_depend_on_their_block_height():
    class Narrow(NumpyLoops):
        _ELEMENTS = 16

    generator = np.random.default_rng(5)
    steps, offsets = generator.normal(0, 1e3, (23, 9)), generator.random(9) * 256
    whole, pieces = (wrapped(loops, steps, offsets, np.uint8) for loops in (BOTH[0], Narrow()))
    np.testing.assert_array_equal(whole[1], pieces[1])
    phases = whole[1]
    outs = [np.empty(23, np.float32), np.empty(23, np.float32)]
    for loops, out in zip((BOTH[0], Narrow()), outs, strict=True):
        loops.forward(phases, np.ones(9, np.float32), out)
    np.testing.assert_allclose(*outs, atol=2e-6)
    for loops, out in zip((BOTH[0], Narrow()), outs, strict=True):
        loops.forward_pair(phases, np.ones(18, np.float32), out)
    np.testing.assert_allclose(*outs, atol=4e-6)
