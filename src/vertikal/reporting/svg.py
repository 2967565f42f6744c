"""Charts as inline SVG: lines over a pair of axes here, bars in `bars`.

The strings carry classes instead of colours, so that one stylesheet
(`vertikal.reporting.style.chart_css`) dresses them for light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from vertikal.reporting.axes import Axis, drawable, make_axis, short_number
from vertikal.reporting.bars import BarGroup, bar_chart
from vertikal.reporting.frame import (
    LABEL_SIZE,
    LegendEntry,
    colour_class,
    dash_class,
    heading,
    no_data,
)
from vertikal.reporting.markup import fit, number, svg_root, text, text_width, tooltip
from vertikal.reporting.thinning import Point, Run, even_picks, runs_of, thin

__all__ = ["BarGroup", "Series", "bar_chart", "line_chart"]

_MOST_POINTS: Final = 400
# Every point of a short line is marked; a long one answers the pointer at this many places.
_MARKED_POINTS: Final = 30
_HOVER_POINTS: Final = 24


@dataclass(frozen=True)
class Series:
    """One line: `x` and `y` of equal length, in the order in which the pen moves."""

    name: str
    x: Collection[float]
    y: Collection[float]
    dashed: bool = False

    def __post_init__(self) -> None:
        """Copy to tuples of floats, so that arrays may be passed and later changed."""
        object.__setattr__(self, "x", tuple(float(value) for value in self.x))
        object.__setattr__(self, "y", tuple(float(value) for value in self.y))
        if len(self.x) != len(self.y):
            raise ValueError(
                f"series {self.name!r}: x and y must have the same length, "
                f"got {len(self.x)} and {len(self.y)}"
            )


@dataclass(frozen=True)
class _Plot:
    """The rectangle of a line chart and the two axes that span it."""

    left: float
    top: float
    right: float
    bottom: float
    x: Axis
    y: Axis

    def place(self, x: float, y: float) -> Point | None:
        """Pixel of a data point, or None where it has no place on the axes."""
        if not (drawable(x, log=self.x.log) and drawable(y, log=self.y.log)):
            return None
        across, up = self.x.fraction(x), self.y.fraction(y)
        return (
            self.left + across * (self.right - self.left),
            self.bottom - up * (self.bottom - self.top),
        )


def line_chart(
    series: Sequence[Series],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    log_x: bool = False,
    log_y: bool = False,
    diagonal: bool = False,
    width: float = 480,
    height: float = 380,
) -> str:
    """Lines with axes, legend and tooltips; `diagonal` adds y = x, the chance line of a ROC.

    Points that are not finite, or not positive on a logarithmic axis, leave a gap. A chart
    without any point says "no data". `height` grows if the legend needs the room.
    """
    points = [_drawable_points(one, log_x, log_y) for one in series]
    entries = [
        LegendEntry(
            one.name if found else f"{one.name} (no data)",
            colour_class(i),
            dash_class(i, dashed=one.dashed),
        )
        for i, (one, found) in enumerate(zip(series, points, strict=True))
        if one.name
    ]
    head = heading(title, entries, 0, width)
    top = head.height + (30 if y_label else 12)
    height = max(height, top + 200)
    bottom = height - (46 if x_label else 26)
    y_target = max(2, min(6, round((bottom - top) / 48)))
    y_axis = make_axis([y for run in points for _, y in run], log=log_y, target=y_target)
    left = 8 + max(text_width(label, LABEL_SIZE) for label in y_axis.labels)
    x_axis = _x_axis([x for run in points for x, _ in run], log_x, width - left)
    left = max(left, text_width(x_axis.labels[0], LABEL_SIZE) / 2)
    right = width - max(6.0, text_width(x_axis.labels[-1], LABEL_SIZE) / 2)
    plot = _Plot(left, top, right, bottom, x_axis, y_axis)

    body = [head.markup]
    if y_label:
        body.append(text(0, top - 15, fit(y_label, LABEL_SIZE, width), "axis-name"))
    if any(points):
        body.append(_axes_markup(plot, fit(x_label, LABEL_SIZE, right - left)))
        body.append(_diagonal(plot) if diagonal else "")
        body += [_series_markup(plot, i, one) for i, one in enumerate(series)]
    else:
        # Ticks would suggest a range that nobody measured.
        body.append(no_data(width / 2, (top + bottom) / 2))
    names = ", ".join(entry.name for entry in entries) or "one line"
    description = f"Line chart: {title}. {y_label} over {x_label}. Lines: {names}."
    return svg_root(width, height, description, body)


def _x_axis(values: Sequence[float], log: bool, room: float) -> Axis:
    """The most steps whose labels stand clear of one another."""
    for target in (8, 6, 5, 4, 3):
        axis = make_axis(values, log=log, target=target)
        widest = max(text_width(label, LABEL_SIZE) for label in axis.labels)
        if (widest + 14) * len(axis.labels) <= room:
            return axis
    # A narrow chart of numbers with many digits: the two ends must do.
    axis = make_axis(values, log=log, target=2)
    return Axis(axis.ticks[:: len(axis.ticks) - 1], axis.labels[:: len(axis.labels) - 1], log=log)


def _axes_markup(plot: _Plot, x_label: str) -> str:
    parts: list[str] = []
    for tick, label in zip(plot.y.ticks, plot.y.labels, strict=True):
        y = plot.bottom - plot.y.fraction(tick) * (plot.bottom - plot.top)
        parts.append(
            f'<path class="grid" d="M{number(plot.left)} {number(y)}H{number(plot.right)}"/>'
        )
        parts.append(text(plot.left - 8, y + 4, label, "tick", "end"))
    parts.append(
        f'<path class="axis" d="M{number(plot.left)} {number(plot.bottom)}H{number(plot.right)}"/>'
    )
    for tick, label in zip(plot.x.ticks, plot.x.labels, strict=True):
        x = plot.left + plot.x.fraction(tick) * (plot.right - plot.left)
        parts.append(f'<path class="axis" d="M{number(x)} {number(plot.bottom)}v5"/>')
        parts.append(text(x, plot.bottom + 19, label, "tick", "middle"))
    if x_label:
        middle = (plot.left + plot.right) / 2
        parts.append(text(middle, plot.bottom + 40, x_label, "axis-name", "middle"))
    return "".join(parts)


def _diagonal(plot: _Plot) -> str:
    """The line y = x over the values that both axes show; a curve where only one is log."""
    low, high = max(plot.x.low, plot.y.low), min(plot.x.high, plot.y.high)
    if low >= high:
        return ""
    steps = 1 if plot.x.log == plot.y.log else 32
    placed = [
        plot.place(value, value)
        for value in (low + (high - low) * (i / steps) ** 3 for i in range(steps + 1))
    ]
    return f'<path class="diagonal" d="{"".join(_path(run) for run in runs_of(placed))}"/>'


def _series_markup(plot: _Plot, index: int, series: Series) -> str:
    """The line with its gaps, dots for lone points, and places that answer the pointer."""
    pairs = list(zip(series.x, series.y, strict=True))
    placed = [plot.place(x, y) for x, y in pairs]
    runs = thin(runs_of(placed), _MOST_POINTS)
    if not runs:
        return ""
    dash = dash_class(index, dashed=series.dashed)
    kind = f"line {dash}" if dash else "line"
    path = "".join(_path(run) for run in runs if len(run) > 1)
    lone = {run[0] for run in runs if len(run) == 1}
    found = [(pair, point) for pair, point in zip(pairs, placed, strict=True) if point]
    marked = len(found) <= _MARKED_POINTS
    chosen = even_picks(len(found), _MARKED_POINTS if marked else _HOVER_POINTS)
    hover = "".join(
        _marker(point, f"{series.name}\n{_coordinates(pair)}", "dot" if marked else "spot")
        for pair, point in (found[i] for i in chosen)
    )
    dots = "" if marked else "".join(_marker(point, "", "dot") for point in sorted(lone))
    line = f'<path class="{kind}" d="{path}"/>' if path else ""
    return f'<g class="{colour_class(index)}">{line}{dots}{hover}</g>'


def _path(run: Run) -> str:
    """Absolute first point, then lines; repeated pixels are left out."""
    placed = [f"{number(x)} {number(y)}" for x, y in run]
    kept = [p for i, p in enumerate(placed) if i == 0 or p != placed[i - 1]]
    return "M" + "L".join(kept)


def _marker(point: Point, tip: str, kind: str) -> str:
    radius = "2.5" if kind == "dot" else "5"
    x, y = point
    inner = f">{tooltip(tip)}</circle>" if tip else "/>"
    return f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="{radius}"{inner}'


def _coordinates(pair: Point) -> str:
    return f"x {short_number(pair[0])}, y {short_number(pair[1])}"


def _drawable_points(series: Series, log_x: bool, log_y: bool) -> list[Point]:
    return [
        (x, y)
        for x, y in zip(series.x, series.y, strict=True)
        if drawable(x, log=log_x) and drawable(y, log=log_y)
    ]
