"""Stacked horizontal bars: how much of a cost falls to each stage and each party.

There is no axis to read off, because every bar carries its value in words and units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vertikal.reporting.axes import drawable, short_number
from vertikal.reporting.frame import LABEL_SIZE, LegendEntry, colour_class, heading, no_data
from vertikal.reporting.markup import fit, number, svg_root, text, text_width, tooltip

__all__ = ["BarGroup", "bar_chart"]

_BAR_PITCH: Final = 34.0
_BAR_HEIGHT: Final = 20.0
_BASELINE: Final = 14.3


@dataclass(frozen=True)
class BarGroup:
    """One bar: a label, and its parts by name (a stage, and the seconds of each party)."""

    label: str
    parts: Mapping[str, float]

    def __post_init__(self) -> None:
        """Copy the parts, so that a counter that goes on counting does not change the chart."""
        object.__setattr__(self, "parts", {name: float(v) for name, v in self.parts.items()})


@dataclass(frozen=True)
class _Bar:
    """What of a group can be drawn: parts of positive length, their sum, and its text."""

    label: str
    parts: tuple[tuple[str, float], ...]
    total: float
    total_text: str


def bar_chart(
    groups: Sequence[BarGroup],
    *,
    title: str = "",
    value_text: Callable[[float], str] = short_number,
    width: float = 720,
) -> str:
    """Horizontal bars stacked from their parts, each with its total in words at its end.

    `value_text` writes the numbers (`seconds_text`, `bytes_text`). A part that is negative
    or not finite has no length; its bar's total says "+ n/a".
    """
    names = list(dict.fromkeys(name for group in groups for name in group.parts))
    colours = {name: colour_class(i) for i, name in enumerate(names)}
    entries = [LegendEntry(name, colours[name], filled=True) for name in names if name]
    head = heading(title, entries, 0, width)
    bars = [_measured(group, value_text) for group in groups]
    label_room = max((text_width(bar.label, LABEL_SIZE) for bar in bars), default=0.0)
    left = min(label_room, 0.3 * width) + 12
    value_room = max((text_width(bar.total_text, LABEL_SIZE) for bar in bars), default=0.0)
    span = max(width - left - 1.06 * value_room - 10, 0.2 * width)
    longest = max((bar.total for bar in bars), default=0.0)
    top = head.height + 8

    body = [head.markup]
    for row, bar in enumerate(bars):
        y = top + 5 + _BAR_PITCH * row
        label = fit(bar.label, LABEL_SIZE, left - 12)
        body.append(text(left - 10, y + _BASELINE, label, "row", "end"))
        end = left
        for name, value in bar.parts:
            length = span * (value / longest)
            words = value_text(value)
            what = f"{bar.label}, {name}: {words}" if name else f"{bar.label}: {words}"
            # A lone part is the total, which already stands at the end of the bar.
            inside = words if len(bar.parts) > 1 else ""
            body.append(_segment(what, inside, colours[name], end, y, length))
            end += length
        body.append(text(end + 7, y + _BASELINE, bar.total_text, "value"))
    bottom = top + _BAR_PITCH * max(len(bars), 2) - 4
    if bars:
        low = top + _BAR_PITCH * len(bars) - 4
        body.append(f'<path class="axis" d="M{number(left)} {number(top)}V{number(low)}"/>')
    else:
        body.append(no_data(width / 2, top + _BAR_PITCH))
    summary = "; ".join(f"{bar.label}: {bar.total_text}" for bar in bars) or "no data"
    return svg_root(width, bottom + 2, f"Bar chart: {title}. {summary}.", body)


def _measured(group: BarGroup, value_text: Callable[[float], str]) -> _Bar:
    known = {n: v for n, v in group.parts.items() if drawable(v, log=False) and v >= 0}
    if not known:
        return _Bar(group.label, (), 0.0, "no data")
    total = math.fsum(known.values())
    missing = " + n/a" if len(known) < len(group.parts) else ""
    parts = tuple((name, value) for name, value in known.items() if value > 0)
    return _Bar(group.label, parts, total, value_text(total) + missing)


def _segment(what: str, inside: str, colour: str, x: float, y: float, length: float) -> str:
    """One part of a bar, with a hair of space after it; `inside` is written where it fits."""
    words = ""
    if inside and text_width(inside, LABEL_SIZE) + 10 <= length:
        words = text(x + length / 2, y + _BASELINE - 0.3, inside, "inside", "middle")
    drawn = max(length - 1, 0.8)
    return (
        f'<g class="{colour}">{tooltip(what)}<rect class="bar" x="{number(x)}" y="{number(y)}" '
        f'width="{number(drawn)}" height="{number(_BAR_HEIGHT)}"/>{words}</g>'
    )
