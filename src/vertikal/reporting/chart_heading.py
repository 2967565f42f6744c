"""Title and legend, which stand above every chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from vertikal.reporting.text_width import fit, text_width, wrap

SERIES_COLOURS: Final = 8
"""Colours of "charts.css" that are told apart."""

BOLD: Final = 1.2
"""Width of bold type, as a multiple of regular type."""

LABEL_SIZE: Final = 12.0
_LINE_HEIGHT: Final = 20.0
_SWATCH: Final = 28.0
_GAP: Final = 14.0


@dataclass(frozen=True)
class LegendEntry:
    """A name beside a sample of its look: "line", "line dash", "line dots" or "bar"."""

    name: str
    colour: str
    sample: str
    label: str = ""
    place: complex = 0j


@dataclass(frozen=True)
class Heading:
    """Lines of the title, placed entries of the legend, and the height of both together."""

    title: Sequence[str]
    legend: Sequence[LegendEntry]
    height: float


def colour_class(index: int) -> str:
    """Name the class of a colour; colours repeat after the last."""
    return f"c{index % SERIES_COLOURS + 1}"


def heading(title: str, entries: Sequence[LegendEntry], width: float) -> Heading:
    """Set the title, and below it the legend: in one row if it fits, in columns otherwise."""
    lines = wrap(title, 15 * BOLD, width, 2)
    top = _LINE_HEIGHT * len(lines) + (6 if lines else 0)
    labels = [fit(entry.name, LABEL_SIZE, width - _SWATCH) for entry in entries]
    rooms = [_SWATCH + text_width(label, LABEL_SIZE) + _GAP for label in labels]
    one_row = sum(rooms) - _GAP <= width
    columns = len(rooms) if one_row else max(1, int((width + _GAP) // max(rooms)))
    legend = []
    for i, (entry, label) in enumerate(zip(entries, labels, strict=True)):
        x = sum(rooms[:i]) if one_row else max(rooms) * (i % columns)
        y = top + _LINE_HEIGHT * (i // columns + 1)
        legend.append(replace(entry, label=label, place=complex(x, y)))
    bottom = legend[-1].place.imag if legend else top
    return Heading(lines, legend, bottom + 8 if lines or legend else 0)
