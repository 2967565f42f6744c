"""The stylesheet dresses every class that the drawings use, and loads nothing."""

from __future__ import annotations

import re

from vertikal.reporting import BarGroup, Flow, Series, bar_chart, flow_diagram, line_chart
from vertikal.reporting.style import SCRIPT, chart_css, page_css

# Grouping classes and texts that look as the root says.
_UNSTYLED = {"vk-svg", "party", "axis-name"}


def test_every_class_of_a_drawing_has_a_rule() -> None:
    parties = [f"p{i}" for i in range(8)]
    flows = [Flow(a, b, "x", 1, a < b) for a in parties for b in parties if a != b]
    drawings = [
        line_chart([Series("a", range(50), range(50)), Series("b", [], [], dashed=True)]),
        line_chart([Series("a", [1], [1])], x_label="x", y_label="y", title="t", diagonal=True),
        line_chart([]),
        bar_chart([BarGroup("a", {"x": 1, "y": 2})]),
        flow_diagram(parties, flows, label_parties=["p0"]),
        flow_diagram(parties[:2], flows[:1]),
    ]
    used = {
        name
        for drawing in drawings
        for names in re.findall(r'class="([^"]*)"', drawing)
        for name in names.split()
    }
    css = chart_css()
    missing = {name for name in used - _UNSTYLED if not re.search(rf"\.{name}\b", css)}
    assert missing == set()


def test_places_that_answer_the_pointer_are_hidden_until_then() -> None:
    assert re.search(r"\.vk-svg \.spot\{[^}]*opacity:0\}", chart_css())


def test_every_variable_is_defined() -> None:
    css = page_css()
    used = set(re.findall(r"var\((--[\w-]+)\)", css))
    defined = set(re.findall(r"(--[\w-]+):", css))
    assert used <= defined


def test_nothing_is_loaded() -> None:
    for words in ("url(", "@import", "@font-face", "//", "fetch(", "XMLHttpRequest"):
        assert words not in page_css()
        assert words not in SCRIPT


def test_braces_match() -> None:
    assert page_css().count("{") == page_css().count("}")
    assert SCRIPT.count("{") == SCRIPT.count("}")
    assert SCRIPT.count("(") == SCRIPT.count(")")
