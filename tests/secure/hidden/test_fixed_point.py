"""Fixed point: as many bits as fit, never one too many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.algorithms.kernel_machine.settings import MOST_ROWS_OF_SHORT_WORDS
from vertikal.errors import RingError
from vertikal.ring.integers import Ring
from vertikal.ring.wide_numbers import DROPPED
from vertikal.secure.hidden.fixed_point import MARGIN, FixedPointProducts

every_ring = pytest.mark.parametrize("bits", [32, 64])


def exact(fixed, vectors, matrix_row, noise=0.0):
    """The product of encoded vectors with one row, as integers that do not wrap."""
    elements, _ = fixed.encode(vectors, "coefficients", noise)
    signed = elements.view(f"int{fixed.ring.bits}").astype(object)
    return [sum(int(c) * int(m) for c, m in zip(v, matrix_row, strict=True)) for v in signed.T]


@given(
    st.sampled_from([32, 64]),
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=40),
    st.integers(-30, 10),
    st.sampled_from([None, 4, 6, 28]),
)
def test_no_product_leaves_the_ring(bits, values, scale, opened):
    fixed = FixedPointProducts(Ring(bits))
    vectors = np.ldexp(np.array(values), scale)[:, None]
    # The worst row: the largest entry that rounded cosines can give, each with its vector's sign.
    top = math.floor(MARGIN * 2**fixed.matrix_bits)
    row = [top if v >= 0 else -top for v in vectors[:, 0]]
    # A helper that leaves so many bits of full scale adds up to this much.
    noise = 0 if opened is None else 2 ** (bits - 1 - opened)
    (worst,) = exact(fixed, vectors, row, noise / 2 ** (bits - 1))
    assert abs(worst) + noise < 2 ** (bits - 1)


@every_ring
def test_the_largest_cosine_is_within_the_margin(bits):
    fixed = FixedPointProducts(Ring(bits))
    turn = np.arange(256) * (2 * np.pi / 256)
    cos, sin = (fixed.table(f(turn)).view(np.int64) for f in (np.cos, np.sin))
    largest = np.abs(np.outer(cos, cos) + np.outer(sin, sin)).max()
    if bits == 32:  # two roundings of half a unit
        largest = largest / 2**DROPPED + 1
    assert largest <= MARGIN * 2**fixed.matrix_bits


@every_ring
def test_a_product_comes_back_as_it_was(bits):
    fixed = FixedPointProducts(Ring(bits))
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(30, 3)) * [1e-6, 1.0, 1e5]
    matrix = generator.uniform(-1, 1, (20, 30))
    elements, fractions = fixed.encode(vectors, "coefficients")
    whole = np.rint(matrix * 2**fixed.matrix_bits).astype(np.int64).astype(fixed.ring.dtype)
    found = fixed.decode(whole @ elements, fractions)
    tolerance = {32: 1e-3, 64: 1e-8}[bits]
    scale = np.abs(vectors).sum(axis=0)
    assert (np.abs(found - matrix @ vectors) <= tolerance * scale).all()


def test_zero_stays_zero_and_each_column_has_its_own_bits():
    fixed = FixedPointProducts(Ring(32))
    elements, fractions = fixed.encode(np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 0.0]]), "x")
    assert not elements[:, 0].any()
    assert elements[2, 1] == 0
    assert fractions[0] > fractions[1] > fixed.matrix_bits


def test_coarse_rounding_is_right_on_average_and_repeats():
    """Many equal residuals of a fraction of a unit: rounding to nearest would lose them all."""
    fixed = FixedPointProducts(Ring(32))
    vectors = np.full((60_000, 1), 1 / 60_000)
    elements, fractions = fixed.encode(vectors, "residuals")
    total = float(elements.view("int32").astype(float).sum())
    assert total * 2.0 ** (fixed.matrix_bits - fractions[0]) == pytest.approx(1.0, rel=0.01)
    assert np.array_equal(elements, fixed.encode(vectors, "residuals")[0])


def test_equal_residuals_of_all_rows_that_are_allowed_fit_into_32_bits():
    fixed = FixedPointProducts(Ring(32))
    for size in (1.0, 1.999):
        residuals = np.full((MOST_ROWS_OF_SHORT_WORDS, 1), size)
        elements, _ = fixed.encode(residuals, "residuals", noise=2.0**-4)
        assert elements.any()


def test_what_does_not_fit_is_refused():
    fixed = FixedPointProducts(Ring(32))
    for many in (5_000_000, 9_000_000):
        with pytest.raises(RingError, match=f"residuals of {many} entries do not fit into 32 bits"):
            fixed.encode(np.ones((many, 1)), "residuals")
    for bad in (np.nan, np.inf):
        with pytest.raises(RingError, match="coefficients must be finite, got NaN or infinity"):
            fixed.encode(np.array([[1.0], [bad]]), "coefficients")
