"""Shares mod 2^40 that each holder rounds by itself, and that add up mod 2^32."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.hidden import rounded_share
from vertikal.ring.wide_numbers import DROPPED, WIDE, halves, joined, wide_shape


@given(st.integers(-(2**39), 2**39 - 1), st.integers(0, 2**40 - 1))
def test_no_carry_is_lost_whatever_the_shares(number, share):
    total = rounded_share(share) + rounded_share((number - share) % 2**WIDE)
    signed = (total + 2**31) % 2**32 - 2**31
    gap = signed - number / 2**DROPPED
    # At the ends of the range a number may round to the other end, one unit further.
    assert min(abs(gap), 2**32 - abs(gap)) <= 1


def test_rounding_is_right_on_average():
    share = np.random.default_rng(0).integers(0, 2**40, 200_000, dtype=np.uint64)
    for number in (0, 77, 128, -300):
        other = (np.int64(number) - share.astype(np.int64)) % 2**40
        total = (share.astype(np.int64) + 128) // 256 + (other + 128) // 256
        signed = (total + 2**31) % 2**32 - 2**31
        assert abs(signed.mean() - number / 256) < 0.01


def test_bytes_are_numbers_and_back():
    planes = np.arange(5 * 6, dtype=np.uint8).reshape(wide_shape((2, 3)))
    low, high = halves(planes)
    assert low.shape == high.shape == (2, 3)
    assert int(joined((low, high))[0, 1]) == int.from_bytes([4, 5, 6, 7, 25], "little")
    low[...], high[...] = 0, 0
    assert not planes.any()
