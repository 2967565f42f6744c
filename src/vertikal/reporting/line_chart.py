"""Lines over a pair of axes: curves of a training run, ROC curves, figures of benchmarks."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from vertikal.reporting.axes import Axis, drawable, make_axis
from vertikal.reporting.chart_heading import (
    LABEL_SIZE,
    SERIES_COLOURS,
    LegendEntry,
    colour_class,
    heading,
)
from vertikal.reporting.rendering import render_chart
from vertikal.reporting.text_width import fit, text_width

# Every point of a short line is marked; a long one answers the pointer at this many places.
_MARKED_POINTS: Final = 30
_HOVER_POINTS: Final = 24
_COLUMN: Final = 3.0  # pixels

_Pair = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """One line: ``x`` and ``y`` of equal length, in the order in which the pen moves."""

    name: str
    x: Collection[float]
    y: Collection[float]
    dashed: bool = False

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(
                f"series {self.name!r}: x and y must have the same length, "
                f"got {len(self.x)} and {len(self.y)}"
            )


@dataclass(frozen=True)
class _Plot:
    """Rectangle of a line chart, and the two axes that span it."""

    left: float
    top: float
    right: float
    bottom: float
    x: Axis
    y: Axis

    def place(self, x: float, y: float) -> complex:
        """Turn a data point into a pixel, x + iy, to a tenth."""
        across, up = self.x.fraction(x), self.y.fraction(y)
        return complex(
            round(self.left + across * (self.right - self.left), 1),
            round(self.bottom - up * (self.bottom - self.top), 1),
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
) -> Markup:
    """Draw lines with axes, legend and tooltips; ``diagonal`` adds y = x on equal scales.

    Points that are not finite, or not positive on a logarithmic axis, leave a gap. A chart
    without any point says "no data". ``height`` grows if the legend needs the room.
    """
    points = [_points(one, log_x, log_y) for one in series]
    known = [[pair for pair in pairs if pair is not None] for pairs in points]
    entries = [
        LegendEntry(one.name if found else f"{one.name} (no data)", colour_class(i), _look(i, one))
        for i, (one, found) in enumerate(zip(series, known, strict=True))
        if one.name
    ]
    head = heading(title, entries, width)
    top = head.height + (30 if y_label else 12)
    height = max(height, top + 200)
    bottom = height - (46 if x_label else 26)
    y_target = max(2, min(6, round((bottom - top) / 48)))
    y_axis = make_axis([y for pairs in known for _, y in pairs], log=log_y, target=y_target)
    left = 8 + max(text_width(label, LABEL_SIZE) for label in y_axis.labels)
    x_axis = _x_axis([x for pairs in known for x, _ in pairs], log_x, width - left)
    left = max(left, text_width(x_axis.labels[0], LABEL_SIZE) / 2)
    right = width - max(6.0, text_width(x_axis.labels[-1], LABEL_SIZE) / 2)
    plot = _Plot(left, top, right, bottom, x_axis, y_axis)
    names = ", ".join(entry.name for entry in entries) or "one line"
    return render_chart(
        "line_chart.svg",
        width=width,
        height=height,
        description=f"Line chart: {title}. {y_label} over {x_label}. Lines: {names}.",
        head=head,
        plot=plot,
        x_label=fit(x_label, LABEL_SIZE, right - left),
        y_label=fit(y_label, LABEL_SIZE, width),
        diagonal=_diagonal(plot) if diagonal else (),
        # Ticks without data would suggest a range that nobody measured.
        lines=[_line(plot, i, one, points[i]) for i, one in enumerate(series) if known[i]],
    )


def _points(series: Series, log_x: bool, log_y: bool) -> list[_Pair | None]:
    """Pairs of a series, with None in place of those that cannot be drawn."""
    pairs = ((float(x), float(y)) for x, y in zip(series.x, series.y, strict=True))
    return [(x, y) if drawable(x, log=log_x) and drawable(y, log=log_y) else None for x, y in pairs]


def _look(index: int, series: Series) -> str:
    """Dash a line on request, and dot one whose colour is already taken."""
    if series.dashed:
        return "line dash"
    return "line dots" if index >= SERIES_COLOURS else "line"


def _x_axis(values: Sequence[float], log: bool, room: float) -> Axis:
    """Find the most steps whose labels stand clear of one another."""
    for target in (8, 6, 5, 4, 3):
        axis = make_axis(values, log=log, target=target)
        widest = max(text_width(label, LABEL_SIZE) for label in axis.labels)
        if (widest + 14) * len(axis.labels) <= room:
            return axis
    # A narrow chart of numbers with many digits: the two ends must do.
    return Axis((axis.ticks[0], axis.ticks[-1]), (axis.labels[0], axis.labels[-1]), log)


def _diagonal(plot: _Plot) -> Sequence[complex]:
    """Ends of y = x over the values that both axes show."""
    low = max(plot.x.ticks[0], plot.y.ticks[0])
    high = min(plot.x.ticks[-1], plot.y.ticks[-1])
    if low >= high or plot.x.log != plot.y.log:
        return ()
    return plot.place(low, low), plot.place(high, high)


def _line(
    plot: _Plot, index: int, series: Series, points: Sequence[_Pair | None]
) -> dict[str, Any]:
    """Path of a series, and the points that show their numbers."""
    pixels = [None if pair is None else plot.place(*pair) for pair in points]
    found = [pair for pair in points if pair is not None]
    marked = len(found) <= _MARKED_POINTS
    shown = len(found) if marked else _HOVER_POINTS
    chosen = [found[round(i * (len(found) - 1) / max(shown - 1, 1))] for i in range(shown)]
    return {
        "colour": colour_class(index),
        "look": _look(index, series),
        "runs": [
            _thinned([pixel for pixel in run if pixel is not None])
            for gap, run in itertools.groupby(pixels, key=lambda pixel: pixel is None)
            if not gap
        ],
        "marked": marked,
        "marks": [
            (plot.place(x, y), f"{series.name}\nx {x:.4g}, y {y:.4g}".strip()) for x, y in chosen
        ],
    }


def _thinned(run: Sequence[complex]) -> list[complex]:
    """Keep the first, lowest, highest and last point of every three pixels of width.

    The picture is the same, and a curve of as many points as rows does not make a report of
    megabytes.
    """
    kept: list[complex] = []
    for _, column in itertools.groupby(run, key=lambda pixel: pixel.real // _COLUMN):
        pixels = list(column)
        places = range(len(pixels))
        lowest = min(places, key=lambda i: pixels[i].imag)
        highest = max(places, key=lambda i: pixels[i].imag)
        kept += [pixels[i] for i in sorted({0, lowest, highest, len(pixels) - 1})]
    return [pixel for pixel, _ in itertools.groupby(kept)]
