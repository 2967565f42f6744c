"""Secrets and errors: their distributions, and that none comes twice."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from vertikal.secure.two_party.lattice.parameters import COINS, DEVIATION
from vertikal.secure.two_party.lattice.small_numbers import SmallNumbers


def test_ternary_numbers_are_equally_likely():
    drawn = SmallNumbers().ternary((300, 1000))
    counts = [int((drawn == value).sum()) for value in (-1, 0, 1)]
    assert sum(counts) == drawn.size
    assert stats.chisquare(counts).pvalue > 1e-6


def test_errors_are_centred_binomial():
    drawn = SmallNumbers().errors((300, 1000))
    values = np.arange(-COINS, COINS + 1)
    chances = [math.comb(2 * COINS, COINS + int(value)) / 4**COINS for value in values]
    counts = np.array([(drawn == value).sum() for value in values])
    assert counts.sum() == drawn.size
    common = np.array(chances) * drawn.size > 10
    pooled = np.append(counts[common], counts[~common].sum())
    expected = np.append(np.array(chances)[common], np.array(chances)[~common].sum())
    assert stats.chisquare(pooled, expected * drawn.size).pvalue > 1e-6
    assert abs(drawn.std() / DEVIATION - 1) < 0.01


def test_no_numbers_come_twice():
    numbers, others = SmallNumbers(), SmallNumbers()
    drawn = [one.errors((64,)).tobytes() for one in (numbers, numbers, others)]
    drawn += [one.ternary((64,)).tobytes() for one in (numbers, others)]
    assert len(set(drawn)) == 5
