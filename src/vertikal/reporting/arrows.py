"""Arrows of a flow diagram: which flows one stands for, and how it is drawn and labelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vertikal.reporting.layout import Curve, Rect
from vertikal.reporting.markup import fit, number, text, text_width, tooltip
from vertikal.reporting.thinning import Point
from vertikal.reporting.units import bytes_text

__all__ = [
    "BADGE",
    "Arrow",
    "Flow",
    "arrow_markup",
    "badge_markup",
    "card_markup",
    "card_size",
    "key_line_markup",
    "lock_markup",
    "merge",
]

BADGE: Final = 20.0
_SMALL: Final = 11.0
_WIDEST_CARD: Final = 124.0
_HEAD_LENGTH: Final = 10.0
_HEAD_ANGLE: Final = 0.42


@dataclass(frozen=True)
class Flow:
    """`what` travelled from `source` to `target`, `size` bytes of it, `masked` or readable."""

    source: str
    target: str
    what: str
    size: float
    masked: bool


@dataclass(frozen=True)
class Arrow:
    """All flows from `source` to `target`, and with `both_ways` those back as well."""

    source: str
    target: str
    flows: tuple[Flow, ...]
    both_ways: bool

    @property
    def masked(self) -> bool:
        """One readable message among masked ones makes the whole arrow open."""
        return all(flow.masked for flow in self.flows)

    @property
    def total(self) -> str:
        """All bytes together."""
        return bytes_text(sum(flow.size for flow in self.flows))

    @property
    def kind(self) -> str:
        """The class that gives line and lock their look."""
        return "masked" if self.masked else "open"

    @property
    def what(self) -> str:
        """The name of the largest flow, and how many other kinds travel with it."""
        by_size = sorted(self.flows, key=lambda flow: -flow.size)
        names = list(dict.fromkeys(flow.what for flow in by_size))
        more = f" + {len(names) - 1} more" if len(names) > 1 else ""
        return fit(names[0], _SMALL, _WIDEST_CARD - text_width(more, _SMALL)) + more

    @property
    def summary(self) -> str:
        """Ends, bytes and look in one line, for those who hear the diagram."""
        ends = f"{self.source} {'and' if self.both_ways else 'to'} {self.target}"
        return f"{ends} {self.total} {self.kind}"

    @property
    def tip(self) -> str:
        """The full list that the arrow stands for."""
        sign = "⇄" if self.both_ways else "→"
        lines = [f"{self.source} {sign} {self.target}: {self.total}"]
        for flow in self.flows:
            way = f" ({flow.source} → {flow.target})" if self.both_ways else ""
            look = "masked" if flow.masked else "open"
            lines.append(f"{flow.what}{way}: {bytes_text(flow.size)}, {look}")
        return "\n".join(lines)


def merge(flows: Sequence[Flow], *, both_ways: bool) -> tuple[Arrow, ...]:
    """One arrow per direction between two parties, or one per pair with `both_ways`."""
    grouped: dict[tuple[str, str], list[Flow]] = {}
    for flow in flows:
        way = (flow.source, flow.target)
        back = (flow.target, flow.source)
        grouped.setdefault(back if both_ways and back in grouped else way, []).append(flow)
    return tuple(
        Arrow(*way, tuple(group), len({flow.source for flow in group}) > 1)
        for way, group in grouped.items()
    )


def arrow_markup(arrow: Arrow, curve: Curve) -> str:
    """The curve, a wide invisible copy that the pointer can hit, and its heads."""
    start = _back_from(curve.start, curve.control) if arrow.both_ways else curve.start
    end = _back_from(curve.end, curve.control)
    path = f"M{_pair(start)}Q{_pair(curve.control)} {_pair(end)}"
    heads = _head(curve.end, curve.control)
    if arrow.both_ways:
        heads += _head(curve.start, curve.control)
    return (
        f'<g class="{arrow.kind}">{tooltip(arrow.tip)}<path class="hit" d="{path}"/>'
        f'<path class="arrow" d="{path}"/>{heads}</g>'
    )


def card_size(arrow: Arrow, *, with_what: bool) -> tuple[float, float]:
    """Width and height of the label of `arrow`."""
    size = text_width(arrow.total, _SMALL) * 1.06 + 24
    if not with_what:
        return size, 20.0
    return max(text_width(arrow.what, _SMALL) + 10, size), 34.0


def card_markup(arrow: Arrow, spot: Rect, *, with_what: bool) -> str:
    """A small card on the arrow: what travels, and below it the lock and the size."""
    left, top = spot.x - spot.width / 2, spot.y - spot.height / 2
    baseline = top + (28 if with_what else 14)
    start = spot.x - (text_width(arrow.total, _SMALL) + 14) / 2
    what = text(spot.x, top + 14, arrow.what, "what", "middle") if with_what else ""
    return (
        f'<g class="{arrow.kind}">{tooltip(arrow.tip)}'
        f'<rect class="card" x="{number(left)}" y="{number(top)}" '
        f'width="{number(spot.width)}" height="{number(spot.height)}" rx="4"/>'
        f"{what}{lock_markup(start, baseline - 10, closed=arrow.masked)}"
        f"{text(start + 14, baseline, arrow.total, 'size')}</g>"
    )


def badge_markup(index: int, arrow: Arrow, spot: Rect) -> str:
    """A number on the arrow, explained in the key."""
    return (
        f'<g class="{arrow.kind}">{tooltip(arrow.tip)}<circle class="badge" '
        f'cx="{number(spot.x)}" cy="{number(spot.y)}" r="{number(BADGE / 2 - 0.5)}"/>'
        f"{text(spot.x, spot.y + 3.8, str(index), 'count', 'middle')}</g>"
    )


def key_line_markup(index: int, arrow: Arrow, x: float, y: float, room: float) -> str:
    """Number, ends, lock and size; a long name yields room only as far as the other needs it."""
    sign = " ⇄ " if arrow.both_ways else " → "
    names = room - 124 - text_width(sign, _SMALL)
    source_room = max(names / 2, names - text_width(arrow.target, _SMALL))
    source = fit(arrow.source, _SMALL, source_room)
    target = fit(arrow.target, _SMALL, names - text_width(source, _SMALL))
    size_x = x + room - 90
    return (
        f'<g class="{arrow.kind}">{tooltip(arrow.tip)}'
        f"{text(x + 18, y, str(index), 'count', 'end')}"
        f"{text(x + 26, y, source + sign + target, 'what')}"
        f"{lock_markup(size_x, y - 10, closed=arrow.masked)}"
        f"{text(size_x + 15, y, arrow.total, 'size')}</g>"
    )


def lock_markup(x: float, y: float, *, closed: bool) -> str:
    """A padlock 9 by 11 pixels; the open one has its shackle lifted out on one side."""
    shackle = f"M{number(x + 2)} {number(y + 5)}v-1.8a2.5 2.5 0 0 1 5 0{'v1.8' if closed else ''}"
    return (
        f'<rect class="lock" x="{number(x)}" y="{number(y + 4.5)}" width="9" height="6.5" '
        f'rx="1.2"/><path class="shackle" d="{shackle}"/>'
    )


def _pair(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"


def _back_from(tip: Point, origin: Point) -> Point:
    """Where the line ends, inside the head, so that its end does not show at the tip."""
    angle = math.atan2(tip[1] - origin[1], tip[0] - origin[0])
    return (tip[0] - 6 * math.cos(angle), tip[1] - 6 * math.sin(angle))


def _head(tip: Point, origin: Point) -> str:
    """A triangle at `tip`, pointing away from `origin`."""
    angle = math.atan2(tip[1] - origin[1], tip[0] - origin[0])
    wings = [
        (
            tip[0] - _HEAD_LENGTH * math.cos(angle + turn),
            tip[1] - _HEAD_LENGTH * math.sin(angle + turn),
        )
        for turn in (-_HEAD_ANGLE, _HEAD_ANGLE)
    ]
    corners = " ".join(f"{number(x)},{number(y)}" for x, y in (tip, *wings))
    return f'<polygon class="head" points="{corners}"/>'
