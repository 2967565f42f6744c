"""Axes: which numbers to write along an edge, and where a value falls between them.

Linear axes step by 1, 2 or 5 times a power of ten and logarithmic ones by decades, and
both end on a tick at or beyond the data, so that every point lies between two numbers
that the reader can see.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["Axis", "drawable", "linear_axis", "log_axis", "make_axis", "short_number"]

# Beyond these the arithmetic of an axis would overflow, and no quantity of a report is there.
_HUGE: Final = 1e290
_TINY: Final = 1e-290
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """Ticks with their labels; the first and the last tick are the ends of the axis."""

    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    log: bool

    @property
    def low(self) -> float:
        """The value at the start of the axis."""
        return self.ticks[0]

    @property
    def high(self) -> float:
        """The value at the end of the axis."""
        return self.ticks[-1]

    def fraction(self, value: float) -> float:
        """Where `value` lies: 0 at the first tick, 1 at the last."""
        low, high = self.ticks[0], self.ticks[-1]
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return (value - low) / (high - low)


def drawable(value: float, *, log: bool) -> bool:
    """Whether `value` has a place on an axis at all; the others leave a gap."""
    if log:
        return _TINY <= value <= _HUGE
    return -_HUGE <= value <= _HUGE


def short_number(value: float) -> str:
    """Four significant digits, for tooltips and unit-free bars."""
    return f"{value:.4g}".replace("-", "−") if math.isfinite(value) else "n/a"


def make_axis(values: Iterable[float], *, log: bool, target: int) -> Axis:
    """An axis of about `target` steps over the drawable ones of `values`."""
    kept = [value for value in values if drawable(value, log=log)]
    if not kept:
        kept = [1.0, 10.0] if log else [0.0, 1.0]
    low, high = min(kept), max(kept)
    return log_axis(low, high, target) if log else linear_axis(low, high, target)


def linear_axis(low: float, high: float, target: int) -> Axis:
    """Ticks `i · m · 10^e` with m in {1, 2, 5}, from at most `low` to at least `high`."""
    largest = max(abs(low), abs(high))
    # A span below rounding error has no ticks of its own: show the value with some room.
    if high - low <= max(1e-9 * largest, _TINY):
        room = 0.1 * largest if largest > 1e3 * _TINY else 1.0
        low, high = low - room, high + room
    mantissa, exponent = _step((high - low) / target)
    width = _times_power(mantissa, exponent)
    first = math.floor(low / width) + 1
    while _times_power(first * mantissa, exponent) > low:
        first -= 1
    last = math.ceil(high / width) - 1
    while _times_power(last * mantissa, exponent) < high:
        last += 1
    ticks = tuple(_times_power(i * mantissa, exponent) for i in range(first, last + 1))
    return Axis(ticks, _linear_labels(ticks, exponent), log=False)


def log_axis(low: float, high: float, target: int) -> Axis:
    """Whole decades, or 1, 2 and 5 in each where the data span less than two and there is room."""
    if high <= low * (1 + 1e-9):
        low, high = low / 2, high * 2
    first = math.floor(math.log10(low)) + 1
    while 10.0**first > low:
        first -= 1
    last = math.ceil(math.log10(high)) - 1
    while 10.0**last < high:
        last += 1
    chosen: list[tuple[int, int]] = []
    if math.log10(high) - math.log10(low) < 2:
        marks = [(m, e) for e in range(first, last + 1) for m in (1, 2, 5)]
        start = max(i for i, mark in enumerate(marks) if _times_power(*mark) <= low)
        stop = min(i for i, mark in enumerate(marks) if _times_power(*mark) >= high)
        chosen = marks[start : stop + 1]
    # Unevenly spaced marks are many for their axis sooner than decades are.
    if not 2 <= len(chosen) <= target + 2:
        stride = math.ceil((last - first) / target)
        count = math.ceil((last - first) / stride)
        chosen = [(1, first + i * stride) for i in range(count + 1)]
    plain = all(-4 <= e <= 4 for _, e in chosen)
    labels = tuple(_plain(m, e) if plain else _scientific(m, e) for m, e in chosen)
    return Axis(tuple(_times_power(m, e) for m, e in chosen), labels, log=True)


def _step(rough: float) -> tuple[int, int]:
    """The smallest (m, e), m in {1, 2, 5}, with m · 10^e >= `rough`."""
    exponent = math.floor(math.log10(rough))
    for mantissa in (1, 2, 5):
        if _times_power(mantissa, exponent) >= rough * (1 - 1e-9):
            return mantissa, exponent
    return 1, exponent + 1


def _times_power(factor: int, exponent: int) -> float:
    """factor · 10^exponent with a single rounding, so that 3 · 10^-1 is exactly `0.3`."""
    if exponent >= 0:
        return float(factor * 10**exponent)
    divisor: int = 10**-exponent
    return factor / divisor


def _linear_labels(ticks: tuple[float, ...], exponent: int) -> tuple[str, ...]:
    largest = max(abs(tick) for tick in ticks)
    if largest < 1e6 and exponent >= -5:
        decimals = max(0, -exponent)
        return tuple(f"{tick:,.{decimals}f}".replace("-", "−") for tick in ticks)
    power = math.floor(math.log10(largest))
    decimals = max(0, power - exponent)
    superscript = str(power).translate(_SUPERSCRIPTS)
    return tuple(
        f"{tick / 10.0**power:.{decimals}f}×10{superscript}".replace("-", "−") if tick else "0"
        for tick in ticks
    )


def _plain(mantissa: int, exponent: int) -> str:
    decimals = max(0, -exponent)
    return f"{_times_power(mantissa, exponent):,.{decimals}f}"


def _scientific(mantissa: int, exponent: int) -> str:
    head = "" if mantissa == 1 else f"{mantissa}×"
    return f"{head}10{str(exponent).translate(_SUPERSCRIPTS)}"
