"""Stacked horizontal bars: the share of each stage and each party in a cost.

There is no axis to read off, because every bar carries its value in words and units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from markupsafe import Markup

from vertikal.reporting.axes import drawable
from vertikal.reporting.chart_heading import BOLD, LABEL_SIZE, LegendEntry, colour_class, heading
from vertikal.reporting.rendering import render_chart
from vertikal.reporting.text_width import fit, text_width

_PITCH: Final = 34.0


def bar_chart(
    bars: Mapping[str, Mapping[str, float]],
    *,
    value_text: Callable[[float], str],
    title: str = "",
    width: float = 480,
) -> Markup:
    """Draw for each label a bar stacked from its parts, with the total in words at its end.

    ``value_text`` writes the numbers (`seconds_text`, `bytes_text`). A part that is negative or
    not finite has no length; the total of its bar says "+ n/a".
    """
    names = list(dict.fromkeys(name for parts in bars.values() for name in parts))
    colours = {name: colour_class(i) for i, name in enumerate(names)}
    head = heading(title, [LegendEntry(n, colours[n], "bar") for n in names if n], width)
    known = {
        label: {name: v for name, v in parts.items() if drawable(v, log=False) and v >= 0}
        for label, parts in bars.items()
    }
    sums = {label: math.fsum(parts.values()) for label, parts in known.items()}
    totals = {
        label: value_text(sums[label]) + (" + n/a" if len(known[label]) < len(parts) else "")
        if known[label]
        else "no data"
        for label, parts in bars.items()
    }
    left = 12 + min(max((text_width(label, LABEL_SIZE) for label in bars), default=0), 0.3 * width)
    value_room = BOLD * max((text_width(total, LABEL_SIZE) for total in totals.values()), default=0)
    span = max(width - left - value_room - 10, 0.2 * width)
    longest = max(sums.values(), default=0.0) or 1.0

    drawn = []
    for row, (label, parts) in enumerate(known.items()):
        segments, end = [], left
        for name, value in parts.items():
            words, length = value_text(value), span * (value / longest)
            # A lone part is the total, which already stands at the end of the bar.
            fits = len(parts) > 1 and text_width(words, LABEL_SIZE) + 10 <= length
            segment = {
                "tip": f"{label}, {name}: {words}" if name else f"{label}: {words}",
                "words": words if fits else "",
                "colour": colours[name],
                "start": end,
                "length": length,
            }
            if value > 0:
                segments.append(segment)
            end += length
        bar = {"label": fit(label, LABEL_SIZE, left - 12), "end": end, "total": totals[label]}
        drawn.append(bar | {"y": head.height + 13 + _PITCH * row, "segments": segments})
    summary = "; ".join(f"{label}: {total}" for label, total in totals.items()) or "no data"
    return render_chart(
        "bar_chart.svg",
        width=width,
        height=head.height + 6 + _PITCH * max(len(drawn), 2),
        description=f"Bar chart: {title}. {summary}.",
        head=head,
        bars=drawn,
        left=left,
        pitch=_PITCH,
    )
