"""Units, by hand values and at the points where rounding moves to the next unit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.reporting.units import bytes_text, seconds_text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (33_344_000, "33.3 MB"),
        (101_300_000, "101 MB"),
        (99_960, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (2.5e12, "2.5 TB"),
        (4.2e21, "4,200 EB"),
        (1e71, "1.0e+53 EB"),
        (-1500, "−1.5 kB"),
        (math.nan, "n/a"),
        (math.inf, "n/a"),
        (np.int64(2048), "2.0 kB"),
    ],
)
def test_bytes(value: float, expected: str) -> None:
    assert bytes_text(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 s"),
        (1e-9, "< 1 µs"),
        (3.2e-6, "3.2 µs"),
        (0.0034, "3.4 ms"),
        (0.012, "12 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (3.4, "3.4 s"),
        (48.2, "48.2 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (119.7, "2 min"),
        (125, "2 min 5 s"),
        (3599.6, "1 h"),
        (3900, "1 h 5 min"),
        (86_399, "1 d"),
        (183_600, "2 d 3 h"),
        (1e300, "1.2e+295 d"),
        (-3, "−3.0 s"),
        (math.nan, "n/a"),
    ],
)
def test_seconds(value: float, expected: str) -> None:
    assert seconds_text(value) == expected


@given(st.floats(min_value=0, max_value=1e24))
def test_no_unit_prints_a_thousand_of_itself(value: float) -> None:
    number, unit = bytes_text(value).split()
    if unit != "EB":
        assert float(number) < 1000


@given(st.floats(min_value=60, max_value=1e7))
def test_no_duration_prints_sixty_of_a_smaller_unit(value: float) -> None:
    words = seconds_text(value).split()
    limits = {"s": 60, "min": 60, "h": 24}
    for number, unit in zip(words[::2], words[1::2], strict=True):
        assert int(number.replace(",", "")) < limits.get(unit, 10**6)
