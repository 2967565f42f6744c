"""Text of other parties, made safe to print: it can neither move a cursor nor forge a line."""

from __future__ import annotations

from collections.abc import Sequence


def is_plain(text: str, most: int) -> bool:
    """Return True if a text is printable and no longer than ``most``."""
    return len(text) <= most and text.isprintable()


def printable(text: str) -> str:
    """Write a text on one line, with a question mark for each character that cannot be printed."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in text)


def listed(names: Sequence[str]) -> str:
    """Name several parties in a sentence: "lender, bank and shop"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
