"""What every chart shares: the heading, the legend, and the note in place of missing data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vertikal.reporting.markup import escape, fit, number, text, text_width, tooltip, wrap
from vertikal.reporting.palette import SERIES_COLOURS

__all__ = [
    "LABEL_SIZE",
    "Heading",
    "LegendEntry",
    "colour_class",
    "dash_class",
    "heading",
    "no_data",
]

TITLE_SIZE: Final = 15.0
LABEL_SIZE: Final = 12.0
_LINE_HEIGHT: Final = 20.0
_SWATCH: Final = 22.0
_ENTRY_GAP: Final = 14.0


@dataclass(frozen=True)
class LegendEntry:
    """A name beside a sample of its line (`filled` False) or its bar (`filled` True)."""

    name: str
    colour: str
    dash: str = ""
    filled: bool = False


@dataclass(frozen=True)
class Heading:
    """Markup of title and legend, and the height that they take."""

    markup: str
    height: float


def colour_class(index: int) -> str:
    """The class of the `index`-th colour; colours repeat after the last."""
    return f"c{index % SERIES_COLOURS + 1}"


def dash_class(index: int, *, dashed: bool) -> str:
    """Dashes on request, and dots for a line whose colour is already taken."""
    if dashed:
        return "dash"
    return "dots" if index >= SERIES_COLOURS else ""


def heading(title: str, entries: Sequence[LegendEntry], left: float, width: float) -> Heading:
    """Title, then the legend below it in as many rows as its entries need.

    The legend flows like text, so that entries cannot collide whatever their number.
    """
    parts: list[str] = []
    y, rows = 0.0, 0
    for line in wrap(title, TITLE_SIZE * 1.06, width, 2):
        y += _LINE_HEIGHT
        parts.append(text(left, y - 4, line, "title"))
    y += 6 if parts else 0
    labels = [fit(entry.name, LABEL_SIZE, width - _SWATCH - 8) for entry in entries]
    for entry, label, (x, row) in zip(entries, labels, _legend_places(labels, width), strict=True):
        parts.append(_legend_entry(entry, label, left + x, y + _LINE_HEIGHT * (row + 1)))
        rows = row + 1
    y += _LINE_HEIGHT * rows
    return Heading("".join(parts), y + (8 if parts else 0))


def _legend_places(labels: Sequence[str], width: float) -> list[tuple[float, int]]:
    """Offset and row of each entry: one row if all fit, columns of equal width otherwise."""
    rooms = [_SWATCH + 6 + text_width(label, LABEL_SIZE) + _ENTRY_GAP for label in labels]
    if sum(rooms) - _ENTRY_GAP <= width:
        return [(sum(rooms[:i]), 0) for i in range(len(rooms))]
    columns = max(1, int((width + _ENTRY_GAP) // max(rooms)))
    return [(i % columns * max(rooms), i // columns) for i in range(len(rooms))]


def no_data(x: float, y: float, note: str = "no data") -> str:
    """The note that stands where nothing could be drawn."""
    return text(x, y, note, "none", "middle")


def _legend_entry(entry: LegendEntry, label: str, x: float, baseline: float) -> str:
    middle = baseline - 4
    if entry.filled:
        sample = (
            f'<rect class="bar" x="{number(x)}" y="{number(middle - 5)}" '
            f'width="12" height="10" rx="2"/>'
        )
        offset = 18.0
    else:
        dash = f" {entry.dash}" if entry.dash else ""
        sample = (
            f'<path class="line{dash}" d="M{number(x)} {number(middle)}h{number(_SWATCH - 2)}"/>'
        )
        offset = _SWATCH + 5
    full = tooltip(entry.name) if label != entry.name else ""
    return (
        f'<g class="{escape(entry.colour)}">{full}{sample}'
        f"{text(x + offset, baseline, label, 'legend')}</g>"
    )
