"""Noise on a lattice: its distribution, exact bounds, ties, and no seams that depend on a value."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from vertikal.errors import InputError
from vertikal.secure.keys import prg
from vertikal.secure.lattice_gaussian import (
    BASE,
    DISTANCE,
    LOG_RATIO,
    NARROWEST,
    SPREAD,
    WIDEST,
    LatticeGaussian,
    cumulative,
    fraction_bits_for,
    fresh_noise,
)

KEY = bytes(range(32))


@pytest.mark.parametrize("deviation", [1e-6, 0.3, 1.0, 7.7, 1e4])
def test_the_lattice_suits_the_deviation(deviation):
    width = deviation * 2.0 ** fraction_bits_for(deviation)
    assert NARROWEST * SPREAD <= width <= WIDEST * SPREAD
    LatticeGaussian(width)


@pytest.mark.parametrize("factor", [1.0, 1.37, 2.0])
def test_samples_are_gaussian(factor):
    width = factor * NARROWEST * SPREAD
    noise = LatticeGaussian(width)
    sample = noise.sample(KEY, (40_000,))
    assert sample.dtype == np.int64
    assert np.abs(sample).max() <= noise.reach
    assert stats.kstest(sample / width, "norm").pvalue > 1e-4
    # Half the noise, or a third more, would be seen at once.
    assert stats.kstest(2 * sample / width, "norm").pvalue < 1e-12
    # The lowest digit is as good as uniform: no lattice coarser than the integers shows.
    counts = np.bincount((sample % BASE).astype(int), minlength=BASE)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_key_gives_the_same_noise_and_another_key_other_noise():
    noise = LatticeGaussian(NARROWEST * SPREAD)
    assert (noise.sample(KEY, (5, 2)) == noise.sample(KEY, (5, 2))).all()
    assert (noise.sample(KEY, (5, 2)) != noise.sample(KEY[::-1], (5, 2))).any()


def test_fresh_noise_never_comes_twice():
    width = NARROWEST * SPREAD
    one, other = (fresh_noise(width, (50, 2)) for _ in range(2))
    assert one.shape == (50, 2)
    assert np.abs(one).max() < 15 * width
    assert (one != other).any()


def test_the_table_is_the_distribution_function_to_128_bits():
    bounds = cumulative(NARROWEST)
    reach = len(bounds) // 2
    weights = [math.exp(-(k**2) / (2 * NARROWEST**2)) for k in range(-reach, reach + 1)]
    total = math.fsum(weights)
    for k in (reach - 200, reach, reach + 77):
        expected = math.fsum(weights[: k + 1]) / total
        assert float(Fraction(bounds[k], 2**128)) == pytest.approx(expected, rel=1e-12)
    assert all(a < b for a, b in pairwise(bounds[300:-300]))
    assert bounds[-1] == 2**128 - 1


@pytest.mark.parametrize(("below", "digit"), [(1, 0), (0, 1)])
def test_the_last_bit_of_128_decides(monkeypatch, below, digit):
    noise = LatticeGaussian(NARROWEST * SPREAD)
    bound = cumulative(NARROWEST)[len(cumulative(NARROWEST)) // 2]
    further = np.array([(bound - below) & (2**64 - 1)], np.uint64)
    monkeypatch.setattr(prg, "uniform_elements", lambda *_: further)
    assert noise.digit(np.array([bound >> 64], np.uint64), KEY).tolist() == [digit]


def test_ties_are_decided_by_further_bits():
    noise = LatticeGaussian(NARROWEST * SPREAD)
    bounds = cumulative(NARROWEST)
    middle = len(bounds) // 2
    high = bounds[middle] >> 64
    words = np.array([high, high - 1, high + 1, 0, 2**64 - 1], np.uint64)
    digits = noise.digit(words, KEY)
    # One below the bound is at most 0, one above at least 1; the tie is 0 or 1 by its low bits.
    assert digits[1] == 0
    assert digits[2] == 1
    assert digits[0] in (0, 1)
    assert digits[3] <= -9 * NARROWEST
    assert digits[4] >= 9 * NARROWEST


def test_the_stated_bounds_cover_the_differences():
    # A cell of a rounded Gaussian holds φ(x)(1 + (x² − 1)/24s² + …), x in deviations.
    width = NARROWEST * SPREAD
    assert (14.5**2 + 1) / 24 / width**2 < LOG_RATIO
    tails = 2 * stats.norm.sf(13.5)
    assert 6 * (len(cumulative(WIDEST)) * 2.0**-128 + tails) < DISTANCE


def test_a_cell_of_a_rounded_gaussian_is_that_close():
    # The expansion above, checked where doubles can still see it: at a hundred steps a deviation.
    width = 100.0
    k = np.arange(-500, 501)
    cell = stats.norm.cdf((k + 0.5) / width) - stats.norm.cdf((k - 0.5) / width)
    ratio = np.log(cell * width / stats.norm.pdf(k / width))
    expected = ((k / width) ** 2 - 1) / 24 / width**2
    np.testing.assert_allclose(ratio, expected, atol=2e-8)


@pytest.mark.parametrize("width", [1.0, NARROWEST * SPREAD / 2, 3 * WIDEST * SPREAD])
def test_a_width_that_the_digits_cannot_make_is_refused(width):
    with pytest.raises(InputError, match=r"^width must be from "):
        LatticeGaussian(width)


@pytest.mark.parametrize("deviation", [0.0, -1.0, math.nan, math.inf])
def test_a_deviation_that_is_none_is_refused(deviation):
    with pytest.raises(InputError, match=r"^deviation must be a positive number"):
        fraction_bits_for(deviation)
