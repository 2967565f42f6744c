"""Axes cover their data with round numbers whose labels differ."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.reporting.axes import drawable, linear_axis, log_axis, make_axis, short_number

finite = st.floats(min_value=-1e290, max_value=1e290)
positive = st.floats(min_value=1e-290, max_value=1e290)
targets = st.integers(2, 10)


@given(finite, finite, targets)
def test_linear_ticks_cover_the_range(a: float, b: float, target: int) -> None:
    low, high = min(a, b), max(a, b)
    axis = linear_axis(low, high, target)
    assert axis.low <= low
    assert axis.high >= high
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert 2 <= len(axis.ticks) <= target + 2
    assert len(set(axis.labels)) == len(axis.ticks)


@given(positive, positive, targets)
def test_log_ticks_cover_the_range(a: float, b: float, target: int) -> None:
    low, high = min(a, b), max(a, b)
    axis = log_axis(low, high, target)
    assert axis.low <= low
    assert axis.high >= high
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert 2 <= len(axis.ticks) <= max(target + 2, 4)
    assert len(set(axis.labels)) == len(axis.ticks)


@given(st.lists(st.floats(), max_size=20), st.booleans(), targets)
def test_every_drawable_value_lies_on_the_axis(values: list[float], log: bool, target: int) -> None:
    axis = make_axis(values, log=log, target=target)
    for value in values:
        if drawable(value, log=log):
            assert -1e-9 <= axis.fraction(value) <= 1 + 1e-9


@given(st.floats(min_value=-1e6, max_value=1e6), st.floats(min_value=1e-3, max_value=1e6))
def test_linear_steps_are_one_two_or_five(low: float, span: float) -> None:
    axis = linear_axis(low, low + span, 5)
    step = axis.ticks[1] - axis.ticks[0]
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-4)
    assert min(abs(mantissa - nice) for nice in (1, 2, 5)) < 1e-2


def test_labels_by_hand() -> None:
    assert linear_axis(0, 1, 5).labels == ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")
    assert linear_axis(0, 1, 5).ticks == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert linear_axis(-3, 4, 4).labels == ("−4", "−2", "0", "2", "4")
    assert linear_axis(0, 32561, 4).labels == ("0", "10,000", "20,000", "30,000", "40,000")
    assert linear_axis(0, 3e9, 3).labels == ("0", "1×10⁹", "2×10⁹", "3×10⁹")
    assert linear_axis(0, 4e-7, 2).labels == ("0", "2×10⁻⁷", "4×10⁻⁷")
    assert log_axis(0.001, 1000, 8).labels == ("0.001", "0.01", "0.1", "1", "10", "100", "1,000")
    assert log_axis(2e-6, 0.5, 8).labels == ("10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰")
    assert log_axis(64, 4096, 8).labels == ("50", "100", "200", "500", "1,000", "2,000", "5,000")
    assert log_axis(3e-7, 4e-6, 8).labels == ("2×10⁻⁷", "5×10⁻⁷", "10⁻⁶", "2×10⁻⁶", "5×10⁻⁶")


@pytest.mark.parametrize("value", [0.0, 5.0, -7.25, 1e-300, 3e200])
def test_a_constant_gets_room_on_both_sides(value: float) -> None:
    axis = linear_axis(value, value, 5)
    assert axis.low < value < axis.high


def test_what_cannot_be_drawn() -> None:
    assert not drawable(math.nan, log=False)
    assert not drawable(-math.inf, log=False)
    assert drawable(-1.0, log=False)
    assert not drawable(-1.0, log=True)
    assert not drawable(0.0, log=True)
    assert make_axis([math.nan], log=False, target=5).ticks[0] == 0


def test_short_numbers() -> None:
    assert short_number(0.123456) == "0.1235"
    assert short_number(-2.0) == "−2"
    assert short_number(math.nan) == "n/a"
