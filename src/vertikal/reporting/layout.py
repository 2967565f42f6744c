"""Where the boxes, arrows and labels of a flow diagram go, as plain geometry.

Parties stand on an ellipse, or around the one party that takes part in every exchange.
Labels ride on their arrows at the place where they hide least; if there is no place for
all of them, the caller asks again with smaller ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from vertikal.reporting.thinning import Point

__all__ = ["Curve", "Rect", "connect", "find_hub", "place_labels", "place_parties"]

# Along an arrow, the middle first: there the label is farthest from both boxes.
_PLACES: Final = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72, 0.22, 0.78, 0.16, 0.84)
_SAMPLES: Final = tuple(i / 40 for i in range(41))


@dataclass(frozen=True)
class Rect:
    """A box by its centre and size."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Rect, gap: float) -> bool:
        """Whether less than `gap` pixels lie between the two, both ways."""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2 + gap
            and abs(self.y - other.y) < (self.height + other.height) / 2 + gap
        )

    def contains(self, point: Point) -> bool:
        """Whether `point` lies inside."""
        return (
            abs(point[0] - self.x) <= self.width / 2 and abs(point[1] - self.y) <= self.height / 2
        )

    def exit_towards(self, target: Point, gap: float) -> Point:
        """The point `gap` outside the edge, on the way from the centre to `target`."""
        dx, dy = target[0] - self.x, target[1] - self.y
        half_width, half_height = self.width / 2 + gap, self.height / 2 + gap
        scale = max(abs(dx) / half_width, abs(dy) / half_height, 1e-9)
        return (self.x + dx / scale, self.y + dy / scale)


@dataclass(frozen=True)
class Curve:
    """A quadratic Bézier curve."""

    start: Point
    control: Point
    end: Point

    def at(self, t: float) -> Point:
        """The point at 0 <= t <= 1."""
        a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
        return (
            a * self.start[0] + b * self.control[0] + c * self.end[0],
            a * self.start[1] + b * self.control[1] + c * self.end[1],
        )

    @property
    def length(self) -> float:
        """Distance of the ends, which for a slight bow is close to the length."""
        return math.dist(self.start, self.end)


def find_hub(parties: Sequence[str], pairs: Collection[tuple[str, str]]) -> str | None:
    """The party that takes part in every exchange, if there are enough others to surround it."""
    if len(parties) < 4 or not pairs:
        return None
    common = [party for party in parties if all(party in pair for pair in pairs)]
    partners = {name for pair in pairs for name in pair}
    return common[0] if common and len(partners) > 2 else None


def place_parties(
    parties: Sequence[str], hub: str | None, centre: Point, reach: Point
) -> dict[str, Point]:
    """Centres of the boxes: `hub` in the middle, the others on an ellipse with radii `reach`."""
    ring = [party for party in parties if party != hub]
    # Two parties face each other left and right; three and more start from the top.
    turn = math.pi if len(ring) == 2 else -math.pi / 2
    angles = [turn + 2 * math.pi * i / len(ring) for i in range(len(ring))]
    across = _stretched([math.cos(angle) for angle in angles])
    down = _stretched([math.sin(angle) for angle in angles])
    places = {
        party: (centre[0] + reach[0] * x, centre[1] + reach[1] * y)
        for party, x, y in zip(ring, across, down, strict=True)
    }
    if hub is not None:
        places[hub] = centre
    return places


def _stretched(values: Sequence[float]) -> list[float]:
    """Scale to fill -1 to 1, since a triangle or pentagon leaves part of its circle empty."""
    low, high = min(values), max(values)
    if high - low < 1e-6:
        return [0.0] * len(values)
    return [2 * (value - low) / (high - low) - 1 for value in values]


def connect(source: Rect, target: Rect, bow: float) -> Curve:
    """An arrow's curve from edge to edge, bent by `bow` pixels to the right of its way."""
    dx, dy = target.x - source.x, target.y - source.y
    distance = math.hypot(dx, dy) or 1.0
    middle = ((source.x + target.x) / 2, (source.y + target.y) / 2)
    control = (middle[0] - dy / distance * bow, middle[1] + dx / distance * bow)
    return Curve(source.exit_towards(control, 3), control, target.exit_towards(control, 5))


def place_labels(
    curves: Sequence[Curve],
    sizes: Sequence[tuple[float, float]],
    boxes: Sequence[Rect],
    *,
    force: bool = False,
) -> tuple[Rect, ...] | None:
    """A rectangle on each curve, clear of the boxes and of each other.

    Short arrows choose first, since they have the least choice. None when some label finds
    no free place, unless `force` asks for the least bad one.
    """
    paths = [tuple(curve.at(t) for t in _SAMPLES) for curve in curves]
    placed: dict[int, Rect] = {}
    for i in sorted(range(len(curves)), key=lambda i: curves[i].length):
        others = [path for j, path in enumerate(paths) if j != i]
        taken = [*boxes, *placed.values()]
        best, best_cost = None, math.inf
        for order, t in enumerate(_PLACES):
            rect = Rect(*curves[i].at(t), *sizes[i])
            blocked = sum(rect.overlaps(other, 3) for other in taken)
            if blocked and not force:
                continue
            hidden = sum(rect.contains(point) for path in others for point in path)
            cost = 1000.0 * blocked + hidden + 0.3 * order
            if cost < best_cost:
                best, best_cost = rect, cost
        if best is None:
            return None
        placed[i] = best
    return tuple(placed[i] for i in range(len(curves)))
