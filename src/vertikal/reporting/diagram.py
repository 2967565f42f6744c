"""Who sends what to whom: the picture that a data protection officer asks for first.

Masked traffic is dashed with a closed lock, open traffic solid with an open one; colour
only repeats what line and lock already say.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vertikal.reporting.arrows import (
    BADGE,
    Arrow,
    Flow,
    arrow_markup,
    badge_markup,
    card_markup,
    card_size,
    key_line_markup,
    lock_markup,
    merge,
)
from vertikal.reporting.frame import LABEL_SIZE, heading, no_data
from vertikal.reporting.layout import (
    Curve,
    Rect,
    connect,
    find_hub,
    place_labels,
    place_parties,
)
from vertikal.reporting.markup import number, svg_root, text, text_width, tooltip, wrap

__all__ = ["Flow", "flow_diagram"]

_BOX_WIDTH: Final = 140.0
_NAME_SIZE: Final = 13.5 * 1.06  # bold runs wider than the estimate
_NAME_PITCH: Final = 16.0
_BOW: Final = 40.0
_KEY_PITCH: Final = 20.0
_KEY_COLUMN: Final = 290.0
# Ways to label, best first: do both directions share a line, does a label say what travels,
# and beyond how many arrows is the picture too dense for it even if labels find room.
_STYLES: Final = ((False, True, 20), (False, False, 24), (True, False, 16))


@dataclass(frozen=True)
class _Drawn:
    """Arrows, their curves and labels; `keyed` when the labels are numbers of a key."""

    arrows: tuple[Arrow, ...]
    curves: tuple[Curve, ...]
    labels: tuple[str, ...]
    keyed: bool = False


def flow_diagram(
    parties: Sequence[str],
    flows: Sequence[Flow],
    *,
    label_parties: Collection[str] = (),
    title: str = "",
    width: float = 760,
) -> str:
    """Parties as boxes and, between each pair, one arrow per direction with its total.

    With few arrows each says what travels; where that does not fit, only how much; and
    where even that does not fit, the two directions share one line, numbered if need be,
    with a key below. The full list of messages is every arrow's tooltip.
    """
    _check(parties, flows, label_parties)
    head = heading(title, (), 0, width)
    if not parties:
        body = [head.markup, no_data(width / 2, head.height + 40)]
        return svg_root(width, head.height + 80, f"Flow diagram: {title}. No parties.", body)

    hub = find_hub(parties, {(flow.source, flow.target) for flow in flows})
    names = {party: _name_lines(party) for party in parties}
    box_height = 34 + _NAME_PITCH * max(len(lines) for lines in names.values())
    drawing = _drawing_height(len(parties), hub is not None)
    top = head.height + 12
    centre = (width / 2, top + drawing / 2)
    reach = (max(width - _BOX_WIDTH, 0) / 2 - 2, (drawing - box_height) / 2 - 2)
    places = place_parties(parties, hub, centre, reach)
    boxes = {party: Rect(*places[party], _BOX_WIDTH, box_height) for party in parties}
    drawn = _draw(flows, boxes)

    body = [head.markup]
    body += [arrow_markup(a, c) for a, c in zip(drawn.arrows, drawn.curves, strict=True)]
    body += [
        _box_markup(party, names[party], boxes[party], party in label_parties) for party in parties
    ]
    body += drawn.labels
    bottom = top + drawing + 14
    if drawn.arrows:
        body.append(_legend_markup(bottom + 20))
        bottom += 28
    else:
        body.append(no_data(width / 2, centre[1] + 4 if len(parties) > 1 else bottom, "no traffic"))
    if drawn.keyed:
        key, key_height = _key_markup(drawn.arrows, bottom + 8, width)
        body.append(key)
        bottom += key_height + 8
    said = "; ".join(arrow.summary for arrow in drawn.arrows) or "no traffic"
    return svg_root(width, bottom + 4, f"Flow diagram: {title}. {said}.", body)


def _check(parties: Sequence[str], flows: Sequence[Flow], label_parties: Collection[str]) -> None:
    """Refuse what could only be drawn wrongly."""
    known = set(parties)
    if len(known) < len(parties):
        raise ValueError(f"parties must have different names, got {list(parties)}")
    for name in (*label_parties, *(name for f in flows for name in (f.source, f.target))):
        if name not in known:
            raise ValueError(f"party {name!r} must be one of the parties {list(parties)}")
    for flow in flows:
        if flow.source == flow.target:
            raise ValueError(
                f"flow {flow.what!r} must lead to another party, "
                f"got {flow.source!r} as source and as target"
            )


def _drawing_height(parties: int, with_hub: bool) -> float:
    """Two parties need a strip; more need the room that their labels take."""
    if parties <= 2:
        return 112.0
    # Around a hub there are two arrows one below the other between the middle and each edge.
    return min(460.0 + 25.0 * (parties - 4) if with_hub else 250.0 + 60.0 * (parties - 3), 640.0)


def _draw(flows: Sequence[Flow], boxes: Mapping[str, Rect]) -> _Drawn:
    """The most talkative labels that find room."""
    obstacles = tuple(boxes.values())
    for both_ways, with_what, most in _STYLES:
        arrows = merge(flows, both_ways=both_ways)
        curves = _curves(arrows, boxes)
        sizes = [card_size(arrow, with_what=with_what) for arrow in arrows]
        spots = place_labels(curves, sizes, obstacles) if len(arrows) <= most else None
        if spots is not None:
            cards = (
                card_markup(arrow, spot, with_what=with_what)
                for arrow, spot in zip(arrows, spots, strict=True)
            )
            return _Drawn(arrows, curves, tuple(cards))
    arrows = merge(flows, both_ways=True)
    curves = _curves(arrows, boxes)
    spots = place_labels(curves, [(BADGE, BADGE)] * len(arrows), obstacles, force=True) or ()
    badges = (badge_markup(i, a, s) for i, (a, s) in enumerate(zip(arrows, spots, strict=True), 1))
    return _Drawn(arrows, curves, tuple(badges), keyed=True)


def _curves(arrows: Sequence[Arrow], boxes: Mapping[str, Rect]) -> tuple[Curve, ...]:
    """Straight lines, but bowed apart where one leads there and another back."""
    ways = {(arrow.source, arrow.target) for arrow in arrows}
    return tuple(
        connect(
            boxes[arrow.source],
            boxes[arrow.target],
            _BOW if (arrow.target, arrow.source) in ways else 0.0,
        )
        for arrow in arrows
    )


def _name_lines(party: str) -> tuple[str, ...]:
    return wrap(party, _NAME_SIZE, _BOX_WIDTH - 14, 2) or ("",)


def _box_markup(party: str, name: Sequence[str], box: Rect, has_labels: bool) -> str:
    """The box of a party: its name in one or two lines, and its role below."""
    role = "label party" if has_labels else "feature party"
    kind = "party labels" if has_labels else "party"
    left, top = box.x - box.width / 2, box.y - box.height / 2
    baseline = box.y - (len(name) * _NAME_PITCH + 14) / 2 + 12
    lines = [
        text(box.x, baseline + _NAME_PITCH * i, n, "name", "middle") for i, n in enumerate(name)
    ]
    lines.append(text(box.x, baseline + _NAME_PITCH * len(name), role, "role", "middle"))
    return (
        f'<g class="{kind}">{tooltip(f"{party}, {role}")}'
        f'<rect class="box" x="{number(left)}" y="{number(top)}" width="{number(box.width)}" '
        f'height="{number(box.height)}" rx="8"/>{"".join(lines)}</g>'
    )


def _legend_markup(y: float) -> str:
    parts: list[str] = []
    x = 2.0
    for masked, words in ((True, "masked: noise on its own"), (False, "open: receiver reads it")):
        parts.append(
            f'<g class="{"masked" if masked else "open"}">'
            f'<path class="arrow" d="M{number(x)} {number(y - 4)}h26"/>'
            f"{lock_markup(x + 33, y - 10, closed=masked)}</g>{text(x + 48, y, words, 'legend')}"
        )
        x += 48 + text_width(words, LABEL_SIZE) + 16
    return "".join(parts)


def _key_markup(arrows: Sequence[Arrow], top: float, width: float) -> tuple[str, float]:
    """The numbered arrows, down the columns, and the height that they take."""
    columns = max(1, int(width // _KEY_COLUMN))
    depth = math.ceil(len(arrows) / columns)
    column = width / columns
    lines = (
        key_line_markup(
            i + 1, arrow, i // depth * column, top + _KEY_PITCH * (i % depth + 0.8), column
        )
        for i, arrow in enumerate(arrows)
    )
    return "".join(lines), depth * _KEY_PITCH
