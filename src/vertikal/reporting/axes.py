"""Axes: the numbers along an edge of a chart, and the place of a value between them.

Linear axes step by 1, 2 or 5 times a power of ten, logarithmic ones by decades (by 1, 2 and 5 in
each where few suffice). Both end on a tick at or beyond the data, so that every point lies between
two numbers that the reader can see.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

# Beyond these the arithmetic of an axis would overflow, and no quantity of a report is there.
_HUGE: Final = 1e290
_TINY: Final = 1e-290
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """Ticks with their labels; the first and the last tick are the ends of the axis."""

    ticks: Sequence[float]
    labels: Sequence[str]
    log: bool

    def fraction(self, value: float) -> float:
        """Place of a value: 0 at the first tick, 1 at the last."""
        low, high = self.ticks[0], self.ticks[-1]
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return (value - low) / (high - low)


def drawable(value: float, *, log: bool) -> bool:
    """Tell whether a value has a place on an axis at all; the others leave a gap."""
    return (_TINY if log else -_HUGE) <= value <= _HUGE


def make_axis(values: Iterable[float], *, log: bool, target: int) -> Axis:
    """Make an axis of about ``target`` steps over those values that can be drawn."""
    kept = [value for value in values if drawable(value, log=log)] or ([1, 10] if log else [0, 1])
    return (_log_axis if log else _linear_axis)(min(kept), max(kept), target)


def _linear_axis(low: float, high: float, target: int) -> Axis:
    largest = max(abs(low), abs(high))
    # A span below rounding error has no ticks of its own: show the value with some room.
    if high - low <= max(1e-9 * largest, _TINY):
        room = 0.1 * largest if largest > 1e3 * _TINY else 1.0
        low, high = low - room, high + room
    rough = (high - low) / target
    exponent = math.floor(math.log10(rough))
    step = next(m for m in (1, 2, 5, 10) if _decimal(m, exponent) >= rough * (1 - 1e-9))
    if step == 10:
        step, exponent = 1, exponent + 1
    width = _decimal(step, exponent)
    marks = [
        (i * step, exponent)
        for i in range(math.floor(low / width) - 1, math.ceil(high / width) + 2)
    ]
    marks = _covering(marks, low, high)
    ticks = [_decimal(*mark) for mark in marks]
    largest = max(abs(ticks[0]), abs(ticks[-1]))
    if largest < 1e6 and exponent >= -5:
        return Axis(ticks, [_plain(tick, exponent) for tick in ticks], log=False)
    power = math.floor(math.log10(largest))
    factors = [_plain(_decimal(i, e - power), exponent - power) for i, e in marks]
    labels = [f"{factor}×{_ten_to(power)}" for factor in factors]
    return Axis(ticks, [w if tick else "0" for w, tick in zip(labels, ticks, strict=True)], False)


def _log_axis(low: float, high: float, target: int) -> Axis:
    if high <= low * (1 + 1e-9):
        low, high = low / 2, high * 2
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    marks = _covering([(m, e) for e in range(first, last + 1) for m in (1, 2, 5)], low, high)
    for stride in itertools.count(1):
        if len(marks) <= target + 2:
            break
        decades = [(1, e) for e in range(first, last + stride + 1, stride)]
        marks = _covering(decades, low, high)
    plain = all(-4 <= e <= 4 for _, e in marks)
    labels = [
        _plain(_decimal(m, e), e) if plain else ("" if m == 1 else f"{m}×") + _ten_to(e)
        for m, e in marks
    ]
    return Axis([_decimal(*mark) for mark in marks], labels, log=True)


def _covering(marks: list[tuple[int, int]], low: float, high: float) -> list[tuple[int, int]]:
    """Keep of ascending marks the last at or below ``low``, the first at or above ``high``, and
    those between them."""
    start = max(i for i, mark in enumerate(marks) if _decimal(*mark) <= low)
    stop = min(i for i, mark in enumerate(marks) if _decimal(*mark) >= high)
    return marks[start : stop + 1]


def _decimal(factor: int, exponent: int) -> float:
    """factor · 10^exponent with a single rounding, so that 3 · 10⁻¹ is exactly 0.3."""
    return float(f"{factor}e{exponent}")


def _plain(value: float, exponent: int) -> str:
    return f"{value:,.{max(0, -exponent)}f}".replace("-", "−")


def _ten_to(exponent: int) -> str:
    return "10" + str(exponent).translate(_SUPERSCRIPTS)
