"""Diagram of who sends what to whom, which a data protection officer asks for first.

Masked traffic is dashed with a closed lock, open traffic solid with an open one; colour only
repeats what line and lock already say. Parties stand on an ellipse, or around the one party that
takes part in every exchange. Points are complex numbers, x + iy in pixels.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from vertikal.reporting.chart_heading import BOLD, LABEL_SIZE, heading
from vertikal.reporting.rendering import render_chart
from vertikal.reporting.text_width import fit, text_width, wrap
from vertikal.reporting.units import bytes_text

_WIDTH: Final = 760.0
_BOX_WIDTH: Final = 140.0
_NAME_SIZE: Final = 13.5 * BOLD
_NAME_PITCH: Final = 16.0
_SMALL: Final = 11.0
_WIDEST_LABEL: Final = 124.0
_MOST_LABELS: Final = 20
_BOW: Final = 40.0
# Along an arrow, the middle first: there a label is farthest from both boxes.
_PLACES: Final = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72, 0.22, 0.78, 0.16, 0.84)
_LEGEND: Final = (("masked", "masked: noise on its own"), ("open", "open: receiver reads it"))


@dataclass(frozen=True)
class Flow:
    """``what`` travelled from ``source`` to ``target``, ``size`` bytes of it; None if not known."""

    source: str
    target: str
    what: str
    size: float | None
    masked: bool

    @property
    def weight(self) -> float:
        return 0.0 if self.size is None else self.size

    @property
    def size_text(self) -> str:
        return "" if self.size is None else f"{bytes_text(self.size)}, "


@dataclass(frozen=True)
class _Box:
    """A rectangle around its centre."""

    centre: complex
    width: float
    height: float

    @property
    def corner(self) -> complex:
        return self.centre - complex(self.width, self.height) / 2

    def overlaps(self, other: _Box, gap: float) -> bool:
        apart = self.centre - other.centre
        return (
            abs(apart.real) < (self.width + other.width) / 2 + gap
            and abs(apart.imag) < (self.height + other.height) / 2 + gap
        )

    def edge_towards(self, target: complex, gap: float) -> complex:
        """Find the point ``gap`` outside the edge, on the way from the centre to ``target``."""
        way = target - self.centre
        across, down = self.width / 2 + gap, self.height / 2 + gap
        return self.centre + way / max(abs(way.real) / across, abs(way.imag) / down, 1e-9)


@dataclass(frozen=True)
class _Arrow:
    """All flows from one party to another, or between them, and the curve that shows them."""

    source: str
    target: str
    flows: Sequence[Flow]
    start: complex
    control: complex
    end: complex

    @property
    def both_ways(self) -> bool:
        return len({flow.source for flow in self.flows}) > 1

    @property
    def kind(self) -> str:
        """One readable message among masked ones makes the whole arrow open."""
        return "masked" if all(flow.masked for flow in self.flows) else "open"

    @property
    def total(self) -> str:
        """All bytes in words; the form in their place where they are not known yet."""
        if any(flow.size is None for flow in self.flows):
            return self.kind
        return bytes_text(sum(flow.weight for flow in self.flows))

    @property
    def what(self) -> str:
        """Name of the largest flow, and the number of other kinds that travel with it."""
        by_size = sorted(self.flows, key=lambda flow: -flow.weight)
        names = list(dict.fromkeys(flow.what for flow in by_size))
        more = f" + {len(names) - 1} more" if len(names) > 1 else ""
        return fit(names[0], _SMALL, _WIDEST_LABEL - text_width(more, _SMALL)) + more

    @property
    def ends(self) -> str:
        return f"{self.source} {'⇄' if self.both_ways else '→'} {self.target}"

    @property
    def tip(self) -> str:
        """Full list of the messages that the arrow stands for."""
        lines = [f"{self.ends}: {self.total}"]
        for flow in self.flows:
            way = f" ({flow.source} → {flow.target})" if self.both_ways else ""
            form = "masked" if flow.masked else "open"
            lines.append(f"{flow.what}{way}: {flow.size_text}{form}")
        return "\n".join(lines)

    @property
    def heads(self) -> list[tuple[complex, float]]:
        """End of the line and angle of each arrow head."""
        tips = (self.end, self.start) if self.both_ways else (self.end,)
        return [(tip, math.degrees(cmath.phase(tip - self.control))) for tip in tips]

    def at(self, t: float) -> complex:
        """Point of the curve at 0 <= t <= 1."""
        return (1 - t) ** 2 * self.start + 2 * t * (1 - t) * self.control + t * t * self.end


def flow_diagram(
    parties: Sequence[str],
    flows: Sequence[Flow],
    *,
    label_parties: Collection[str] = (),
    title: str = "",
) -> Markup:
    """Draw parties as boxes and, between each pair, an arrow per direction with its total.

    Where labels find no room on these, both directions share one line, and of many lines some have
    no label. Every arrow has the full list of its messages as a tooltip.
    """
    _check(parties, flows, label_parties)
    head = heading(title, (), _WIDTH)
    names = {party: wrap(party, _NAME_SIZE, _BOX_WIDTH - 14, 2) or [""] for party in parties}
    size = (_BOX_WIDTH, 34 + _NAME_PITCH * max(map(len, names.values()), default=1))
    hub = _hub(parties, {(flow.source, flow.target) for flow in flows})
    room = complex(_WIDTH, _drawing_height(len(parties), hub is not None))
    centre = room / 2 + 1j * (head.height + 12)
    reach = (room - complex(*size)) / 2 - (2 + 2j)
    places = _places(parties, hub, centre, reach)
    boxes = {party: _Box(places[party], *size) for party in parties}

    for both_ways in (False, True):
        arrows = _arrows(flows, boxes, both_ways=both_ways)
        labels = _labels(arrows, boxes.values())
        if len(labels) == len(arrows) <= _MOST_LABELS:
            break
    told = [dict.fromkeys((arrow.ends, arrow.total, arrow.kind)) for arrow in arrows]
    said = "; ".join(" ".join(words) for words in told)
    legend_y = head.height + room.imag + 46
    return render_chart(
        "flow_diagram.svg",
        width=_WIDTH,
        height=legend_y + 12,
        description=f"Flow diagram: {title}. {said or 'no traffic'}.",
        head=head,
        boxes=[(boxes[party], party, names[party], party in label_parties) for party in parties],
        arrows=arrows,
        labels=[(arrows[i], box, _total_width(arrows[i])) for i, box in labels.items()],
        legend=_LEGEND if arrows else (),
        legend_y=legend_y,
        legend_pitch=64 + max(text_width(words, LABEL_SIZE) for _, words in _LEGEND),
        # Between the boxes, or below a single one.
        note=complex(_WIDTH / 2, centre.imag + 4 if len(parties) != 1 else legend_y - 32),
    )


def _check(parties: Sequence[str], flows: Sequence[Flow], label_parties: Collection[str]) -> None:
    """Refuse what could only be drawn wrongly."""
    if len(set(parties)) < len(parties):
        raise ValueError(f"parties must have different names, got {list(parties)}")
    for name in (*label_parties, *(name for f in flows for name in (f.source, f.target))):
        if name not in parties:
            raise ValueError(f"party {name!r} must be one of the parties {list(parties)}")
    for flow in flows:
        if flow.source == flow.target:
            raise ValueError(
                f"flow {flow.what!r} must lead to another party, "
                f"got {flow.source!r} as source and as target"
            )


def _drawing_height(parties: int, with_hub: bool) -> float:
    """Give two parties a strip, and more the room that their labels take."""
    if parties <= 2:
        return 112.0
    # Around a hub two arrows lie one below the other between the middle and each edge.
    return min(460.0 + 25.0 * (parties - 4) if with_hub else 250.0 + 60.0 * (parties - 3), 640.0)


def _hub(parties: Sequence[str], pairs: Collection[tuple[str, str]]) -> str | None:
    """Find the party in every exchange, if there are enough others to surround it."""
    common = [party for party in parties if all(party in pair for pair in pairs)]
    partners = {name for pair in pairs for name in pair}
    return common[0] if len(parties) > 3 and len(partners) > 2 and common else None


def _places(
    parties: Sequence[str], hub: str | None, centre: complex, reach: complex
) -> dict[str, complex]:
    """Place ``hub`` in the middle and the others on an ellipse with the radii ``reach``."""
    ring = [party for party in parties if party != hub]
    # Two parties face each other left and right; three and more start from the top.
    turn = math.pi if len(ring) == 2 else -math.pi / 2
    points = [cmath.exp(1j * (turn + 2 * math.pi * i / len(ring))) for i in range(len(ring))]
    across = _stretched([point.real for point in points])
    down = _stretched([point.imag for point in points])
    places = {
        party: centre + complex(reach.real * x, reach.imag * y)
        for party, x, y in zip(ring, across, down, strict=True)
    }
    return places if hub is None else places | {hub: centre}


def _stretched(values: Sequence[float]) -> list[float]:
    """Scale to fill −1 to 1, since a triangle or pentagon leaves part of its circle empty."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high - low < 1e-6:
        return [0.0] * len(values)
    return [2 * (value - low) / (high - low) - 1 for value in values]


def _arrows(flows: Sequence[Flow], boxes: Mapping[str, _Box], *, both_ways: bool) -> list[_Arrow]:
    """Merge flows into an arrow per direction, bowed apart, or into a straight one per pair."""
    grouped: dict[tuple[str, str], list[Flow]] = {}
    for flow in flows:
        way, back = (flow.source, flow.target), (flow.target, flow.source)
        grouped.setdefault(back if both_ways and back in grouped else way, []).append(flow)
    arrows = []
    for (source, target), group in grouped.items():
        here, there = boxes[source], boxes[target]
        way_there = there.centre - here.centre
        bow = _BOW if (target, source) in grouped else 0.0
        control = (here.centre + there.centre) / 2 + 1j * bow * way_there / (abs(way_there) or 1.0)
        start, end = (box.edge_towards(control, gap=5) for box in (here, there))
        arrows.append(_Arrow(source, target, group, start, control, end))
    return arrows


def _total_width(arrow: _Arrow) -> float:
    """Room of the lock and the bytes."""
    return BOLD * text_width(arrow.total, _SMALL) + 14


def _labels(arrows: Sequence[_Arrow], boxes: Iterable[_Box]) -> dict[int, _Box]:
    """Find for each arrow, by number, a free place for its label inside the picture.

    Short arrows choose first, since they have the least choice, and each takes the place where
    it hides least of the others. An arrow whose label finds no place is not in the result.
    """
    paths = [[_Box(arrow.at(i / 40), 0, 0) for i in range(41)] for arrow in arrows]
    placed: dict[int, _Box] = {}
    for i in sorted(range(len(arrows)), key=lambda i: abs(arrows[i].end - arrows[i].start)):
        arrow = arrows[i]
        width = max(text_width(arrow.what, _SMALL), _total_width(arrow)) + 10
        taken = [*boxes, *placed.values()]
        others = [point for j, path in enumerate(paths) if j != i for point in path]
        free = [
            label
            for label in (_Box(arrow.at(t), width, 34) for t in _PLACES)
            if width / 2 <= label.centre.real <= _WIDTH - width / 2
            and not any(label.overlaps(other, 3) for other in taken)
        ]
        if free:
            placed[i] = min(free, key=lambda box: sum(box.overlaps(point, 0) for point in others))
    return placed
