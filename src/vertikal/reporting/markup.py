"""Text that is safe inside markup, and an estimate of the room it takes.

Nothing here can measure a font, because the file is written without a browser; widths
are therefore estimated for a wide sans-serif, so that labels which do not overlap here
do not overlap in any usual font either.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

__all__ = ["escape", "fit", "number", "svg_root", "text", "text_width", "tooltip", "wrap"]

# XML 1.0 admits no control characters beyond tab and line ends, and UTF-8 no surrogates.
_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NARROW: Final = frozenset("iIl.,:;'|!jft()[]{}/ \u00a0·-")
_WIDE: Final = frozenset("mwMW@%—…→←")


def escape(value: str) -> str:
    """Escape for element content and quoted attributes; unwritable characters become U+FFFD."""
    return html.escape(_ILLEGAL.sub("\ufffd", value), quote=True)


def text_width(value: str, size: float) -> float:
    """Estimated width in pixels of `value` at font size `size`, on the generous side."""
    return sum(_advance(character) for character in value) * size


def fit(value: str, size: float, width: float) -> str:
    """`value`, or as much of it as fits into `width` followed by an ellipsis."""
    if text_width(value, size) <= width:
        return value
    room = width - text_width("…", size)
    kept = 0
    for character in value:
        room -= _advance(character) * size
        if room < 0:
            break
        kept += 1
    return value[:kept].rstrip() + "…"


def wrap(value: str, size: float, width: float, max_lines: int) -> tuple[str, ...]:
    """Break `value` at spaces into at most `max_lines` lines, cutting what is left over."""
    lines: list[str] = []
    current = ""
    words = value.split()
    for position, word in enumerate(words):
        candidate = f"{current} {word}".strip()
        if not current or text_width(candidate, size) <= width:
            current = candidate
        elif len(lines) == max_lines - 1:
            current = " ".join([current, *words[position:]])
            break
        else:
            lines.append(current)
            current = word
    if current:
        lines.append(current)
    return tuple(fit(line, size, width) for line in lines)


def number(value: float) -> str:
    """A coordinate with one decimal at most: a tenth of a pixel is below what a screen shows."""
    short = f"{value:.1f}"
    short = short[:-2] if short.endswith(".0") else short
    return "0" if short == "-0" else short


def text(x: float, y: float, value: str, kind: str = "", anchor: str = "") -> str:
    """One line of SVG text; `kind` is its class, `anchor` "middle" or "end" where not "start"."""
    attributes = f' class="{kind}"' if kind else ""
    attributes += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{number(x)}" y="{number(y)}"{attributes}>{escape(value)}</text>'


def tooltip(value: str) -> str:
    """What appears when the pointer rests on the enclosing element."""
    return f"<title>{escape(value)}</title>"


def svg_root(width: float, height: float, description: str, body: Sequence[str]) -> str:
    """The outer element: scales with its container, and reads `description` aloud."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="vk-svg" role="img" '
        f'width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 0 {number(width)} {number(height)}" '
        f'aria-label="{escape(description)}">{"".join(body)}</svg>'
    )


def _advance(character: str) -> float:
    """Width of one character in units of the font size."""
    if character in _NARROW:
        return 0.4
    if character in _WIDE:
        return 1.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if unicodedata.combining(character):
        return 0.0
    return 0.72 if character.isupper() else 0.62
