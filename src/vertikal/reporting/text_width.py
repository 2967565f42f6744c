"""Room that a text takes, estimated: a chart is written where no font can be measured.

rich counts the columns of a text in a terminal (two for 東, none for a combining mark). A column is
taken as wide as the average letter of a wide sans-serif (DejaVu Sans) and some more, so that labels
which do not overlap by this estimate do not overlap on the screen either.
"""

from __future__ import annotations

import re
import textwrap
from typing import Final

from rich.cells import cell_len, set_cell_size

_COLUMN: Final = 0.58  # of the font size
# XML 1.0 admits no control characters beyond tab and line ends, and UTF-8 no surrogates.
_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def legible(text: str) -> str:
    """Put U+FFFD in place of what neither XML nor a screen can show."""
    return _ILLEGAL.sub("\ufffd", text)


def text_width(text: str, size: float) -> float:
    """Estimate the width in pixels of a text at this font size."""
    return cell_len(legible(text)) * _COLUMN * size


def fit(text: str, size: float, width: float) -> str:
    """Cut a text to this width; an ellipsis says so."""
    if text_width(text, size) <= width:
        return text
    columns = int(width / (_COLUMN * size))
    return set_cell_size(legible(text), max(columns - 1, 0)).rstrip() + "…"


def wrap(text: str, size: float, width: float, lines: int) -> list[str]:
    """Break a text at spaces into at most so many lines, and cut the rest."""
    columns = max(int(width / (_COLUMN * size)), 1)
    broken = textwrap.wrap(legible(text), columns, max_lines=lines, placeholder="…")
    return [fit(line, size, width) for line in broken]
