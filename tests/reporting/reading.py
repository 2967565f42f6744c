"""Read drawings back: parsed elements, and where their texts and boxes lie.

Boxes of texts use the same width estimate as the drawing code, which the screen never
exceeds for usual fonts; what does not overlap here does not overlap there.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from vertikal.reporting.text_width import text_width

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"title": 15.0, "name": 13.5, "what": 11.0, "size": 11.0, "role": 11.0}
_COORDINATES = {"x", "y", "width", "height", "cx", "cy", "r", "d", "points", "viewBox"}
HOSTILE = "<script>alert(1)</script>\"'&\x00\ud800"


@dataclass(frozen=True)
class Area:
    """A rectangle with a name for the failure message."""

    name: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Area) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def parse(svg: str) -> ET.Element:
    """Parse as XML, with the surroundings that every drawing must have."""
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg\")", svg)
    for element in root.iter():
        for name in _COORDINATES & set(element.keys()):
            assert not re.search("nan|inf|e|j", element.get(name) or ""), (element.tag, name)
    return root


def by_class(root: ET.Element, kind: str) -> list[ET.Element]:
    return [e for e in root.iter() if kind in (e.get("class") or "").split()]


def tooltips(root: ET.Element) -> list[str]:
    return [e.text or "" for e in root.iter(f"{SVG}title")]


def texts(root: ET.Element) -> list[Area]:
    """Areas of all texts, by their anchor and the size that the stylesheet gives them."""
    areas = []
    for element in root.iter(f"{SVG}text"):
        words = element.text or ""
        size = SIZES.get(element.get("class") or "", 12.0)
        width = text_width(words, size)
        shift = {"middle": width / 2, "end": width}.get(element.get("text-anchor") or "", 0.0)
        x, y = float(element.get("x") or 0) - shift, float(element.get("y") or 0)
        areas.append(Area(words, x, y - 0.75 * size, x + width, y + 0.1 * size))
    return areas


def rects(root: ET.Element, kind: str) -> list[Area]:
    areas = []
    for element in by_class(root, kind):
        x, y, width, height = (float(element.get(k) or 0) for k in ("x", "y", "width", "height"))
        areas.append(Area(kind, x, y, x + width, y + height))
    return areas


def overlapping(areas: list[Area]) -> list[tuple[str, str]]:
    return [(a.name, b.name) for a, b in itertools.combinations(areas, 2) if a.overlaps(b)]


def outside(root: ET.Element, areas: list[Area], slack: float = 3.0) -> list[str]:
    """Names of what sticks out of the drawing by more than `slack` pixels."""
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    return [
        area.name
        for area in areas
        if area.left < -slack
        or area.top < -slack
        or area.right > width + slack
        or area.bottom > height + slack
    ]
