"""Displays for notebooks: small tables of HTML in which every text is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

from vertikal.node.printable import printable


def text(value: object) -> str:
    """Escape a value for HTML; what cannot be printed becomes a question mark."""
    return html.escape(printable(str(value)))


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Draw rows under titles; numbers stand to the right."""
    head = "".join(f"<th style='text-align:left'>{text(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(rows: Sequence[tuple[str, object]]) -> str:
    """Draw titles with what belongs to each beside it."""
    body = "".join(
        f"<tr><th style='text-align:left'>{text(title)}</th>{_cell(value)}</tr>"
        for title, value in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def heading(words: object, under: object = "") -> str:
    """Draw a line that stands out, with a plain one under it."""
    below = f"<div>{text(under)}</div>" if under else ""
    return f"<div><strong>{text(words)}</strong></div>{below}"


def bar(done: int, total: int, words: str) -> str:
    """Draw how far something has come."""
    return (
        f"<div><progress value='{int(done)}' max='{max(1, int(total))}'></progress> "
        f"{text(words)}</div>"
    )


def _cell(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    shown = "" if value is None else value
    if number:
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    side = "right" if number else "left"
    return f"<td style='text-align:{side}'>{text(shown)}</td>"
