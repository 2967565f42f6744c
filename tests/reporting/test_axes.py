"""Axes cover their data with round numbers whose labels differ."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.reporting.axes import drawable, make_axis

anything = st.lists(st.floats(), max_size=20)
targets = st.integers(2, 10)


@given(anything, st.booleans(), targets)
def test_every_drawable_value_lies_on_the_axis(values: list[float], log: bool, target: int) -> None:
    axis = make_axis(values, log=log, target=target)
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert 2 <= len(axis.ticks) <= target + 2
    assert len(set(axis.labels)) == len(axis.ticks)
    for value in values:
        if drawable(value, log=log):
            assert axis.ticks[0] <= value <= axis.ticks[-1]
            assert -1e-9 <= axis.fraction(value) <= 1 + 1e-9


@given(st.floats(min_value=-1e6, max_value=1e6), st.floats(min_value=1e-3, max_value=1e6))
def test_linear_steps_are_one_two_or_five(low: float, span: float) -> None:
    ticks = make_axis([low, low + span], log=False, target=5).ticks
    step = ticks[1] - ticks[0]
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-4)
    assert min(abs(mantissa - nice) for nice in (1, 2, 5)) < 1e-2


@pytest.mark.parametrize(
    ("low", "high", "log", "target", "expected"),
    [
        (0, 1, False, 5, "0.0 0.2 0.4 0.6 0.8 1.0"),
        (-3, 4, False, 4, "−4 −2 0 2 4"),
        (0, 32561, False, 4, "0 10,000 20,000 30,000 40,000"),
        (0, 3e9, False, 3, "0 1×10⁹ 2×10⁹ 3×10⁹"),
        (0, 4e-7, False, 2, "0 2×10⁻⁷ 4×10⁻⁷"),
        (0.001, 1000, True, 8, "0.001 0.01 0.1 1 10 100 1,000"),
        (2e-6, 0.5, True, 8, "10⁻⁶ 10⁻⁵ 10⁻⁴ 10⁻³ 10⁻² 10⁻¹ 10⁰"),
        (64, 4096, True, 8, "50 100 200 500 1,000 2,000 5,000"),
        (3e-7, 4e-6, True, 8, "2×10⁻⁷ 5×10⁻⁷ 10⁻⁶ 2×10⁻⁶ 5×10⁻⁶"),
    ],
)
def test_labels_by_hand(low: float, high: float, log: bool, target: int, expected: str) -> None:
    assert " ".join(make_axis([low, high], log=log, target=target).labels) == expected


def test_ticks_are_the_numbers_that_their_labels_say() -> None:
    assert list(make_axis([0, 1], log=False, target=5).ticks) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize("value", [0.0, 5.0, -7.25, 1e-300, 3e200])
def test_a_constant_gets_room_on_both_sides(value: float) -> None:
    ticks = make_axis([value], log=False, target=5).ticks
    assert ticks[0] < value < ticks[-1]


def test_values_without_a_place_are_known() -> None:
    for value in (math.nan, math.inf, -math.inf):
        assert not drawable(value, log=False)
    assert drawable(-1.0, log=False)
    assert not drawable(-1.0, log=True)
    assert not drawable(0.0, log=True)
