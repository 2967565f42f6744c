"""Text of others that is printed: nothing in it may move a cursor or look like lines of ours."""

from __future__ import annotations


def is_plain(text: str, most: int) -> bool:
    """Whether a text of another party may be taken in: printable, and no longer than ``most``."""
    return len(text) <= most and text.isprintable()


def printable(text: str) -> str:
    """The same text on one line, with a question mark for all that cannot be printed."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in text)
