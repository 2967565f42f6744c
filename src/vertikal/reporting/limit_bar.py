"""A bar against its limit: how much of something is used up, and what would be added."""

from __future__ import annotations

from markupsafe import Markup

from vertikal.reporting.rendering import render_chart

_WIDTH = 480.0
_TRACK = 14.0


def limit_bar(value: float, limit: float, *, unit: str, title: str, added: float = 0.0) -> Markup:
    """Draw ``value`` of ``limit`` and, beyond it, ``added``; more than the limit stands out."""
    after = value + added
    longest = max(after, limit) or 1.0
    over = after > limit
    words = f"{_number(value)} of {_number(limit)} {unit}"
    if added:
        words = f"{_number(value)} + {_number(added)} = {_number(after)} of {_number(limit)} {unit}"
    return render_chart(
        "limit_bar.svg",
        width=_WIDTH,
        height=46.0,
        description=f"{title}: {words}{', more than the limit' if over else ''}",
        title=title,
        words=words,
        over=over,
        track=_TRACK,
        used=_WIDTH * value / longest,
        new=_WIDTH * added / longest,
        end=_WIDTH * limit / longest,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}"
