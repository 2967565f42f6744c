"""Tables: cells to text, columns to alignment.

A column of numbers is written with one number of decimals and set flush right, so that
its figures stand below one another and can be compared at a glance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from vertikal.reporting.markup import escape

__all__ = ["Cell", "table_html"]

Cell = str | int | float | bool | None

_MISSING: Final = "–"
# "33.3 MB", "0.904 ± 0.003", "< 1 µs", "12 %": text that is compared like a number.
_NUMERIC_TEXT: Final = re.compile(r"[<>≤≥≈~+−-]?\s?[.\d]")


def table_html(
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    caption: str,
    highlight_row: int | None,
) -> str:
    """A `<table>`; raises ValueError when a row does not match the headers."""
    for index, row in enumerate(rows):
        if len(row) != len(headers):
            raise ValueError(
                f"table row {index} must have {len(headers)} cells, one per header, got {len(row)}"
            )
    if highlight_row is not None and not 0 <= highlight_row < len(rows):
        raise ValueError(
            f"highlight_row must lie between 0 and {len(rows) - 1}, got {highlight_row}"
        )
    columns = [[row[i] for row in rows] for i in range(len(headers))]
    texts = [_column_text(column) for column in columns]
    right = [_is_right(column) for column in columns]
    head = "".join(
        f'<th scope="col"{_class(r)}{_sortable(column)}>{escape(title)}</th>'
        for title, column, r in zip(headers, columns, right, strict=True)
    )
    lines = []
    for index, row in enumerate(rows):
        cells = "".join(
            f"<td{_class(right[i])}{_value(cell)}>{escape(texts[i][index])}</td>"
            for i, cell in enumerate(row)
        )
        best = ' class="best"' if index == highlight_row else ""
        lines.append(f"<tr{best}>{cells}</tr>")
    if not rows:
        lines.append(f'<tr><td colspan="{max(len(headers), 1)}">no rows</td></tr>')
    under = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="table"><table>{under}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{chr(10).join(lines)}</tbody></table></div>"
    )


def _column_text(column: Sequence[Cell]) -> list[str]:
    """Texts of one column, its fractions all with as many decimals as the finest needs."""
    fractions = [abs(v) for v in column if isinstance(v, float) and math.isfinite(v)]
    ordinary = all(v == 0 or 1e-4 <= v < 1e7 for v in fractions)
    decimals = max((_decimals(v) for v in fractions), default=0) if ordinary else None
    return [_cell_text(cell, decimals) for cell in column]


def _decimals(value: float) -> int:
    """Decimals that four significant digits of `value` need."""
    written = f"{value:.4g}"
    return len(written.partition(".")[2]) if "e" not in written else 0


def _cell_text(cell: Cell, decimals: int | None) -> str:
    match cell:
        case None:
            return _MISSING
        case bool():
            return "yes" if cell else "no"
        case str():
            return cell
        case int():
            return f"{cell:,}".replace("-", "−")
        case _ if not math.isfinite(cell):
            return _MISSING if math.isnan(cell) else ("∞" if cell > 0 else "−∞")
        case _ if decimals is None:
            return f"{cell:.4g}".replace("-", "−")
        case _:
            return f"{cell:,.{decimals}f}".replace("-", "−")


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _is_right(column: Sequence[Cell]) -> bool:
    """Numbers, or text that begins like one, in every cell that says anything."""
    filled = [cell for cell in column if cell is not None and cell not in ("", _MISSING)]
    return bool(filled) and all(
        bool(_NUMERIC_TEXT.match(cell)) if isinstance(cell, str) else _is_number(cell)
        for cell in filled
    )


def _sortable(column: Sequence[Cell]) -> str:
    """Real numbers and plain words can be sorted; "12 ms" before "3 s" would mislead."""
    numbers = all(cell is None or _is_number(cell) for cell in column)
    words = all(isinstance(cell, str) for cell in column) and not _is_right(column)
    return " data-sort" if len(column) > 1 and (numbers or words) else ""


def _class(right: bool) -> str:
    return ' class="r"' if right else ""


def _value(cell: Cell) -> str:
    """The unrounded number for sorting; missing ones are empty and sort first."""
    if isinstance(cell, str | bool):
        return ""
    return f' data-v="{cell}"' if cell is not None and math.isfinite(cell) else ' data-v=""'
