"""Merging of flows, and what an arrow says about them."""

from __future__ import annotations

import math

import pytest

from tests.reporting.reading import by_class, parse, tooltips
from vertikal.reporting.arrows import Flow, arrow_markup, key_line_markup, lock_markup, merge
from vertikal.reporting.layout import Curve
from vertikal.reporting.markup import svg_root, text_width

PHASES = Flow("shop", "bank", "phases", 33.3e6, True)
KEYS = Flow("shop", "bank", "public key", 32, False)
ORDER = Flow("bank", "shop", "row order", 130e3, False)


def test_one_arrow_per_direction() -> None:
    there, back = merge([PHASES, ORDER, KEYS], both_ways=False)
    assert (there.source, there.target, there.flows) == ("shop", "bank", (PHASES, KEYS))
    assert (back.source, back.target, back.flows) == ("bank", "shop", (ORDER,))
    assert not there.both_ways


def test_or_one_per_pair() -> None:
    (arrow,) = merge([PHASES, ORDER], both_ways=True)
    assert arrow.both_ways
    assert arrow.flows == (PHASES, ORDER)
    assert "row order (bank → shop): 130 kB, open" in arrow.tip
    assert arrow.summary == "shop and bank 33.4 MB open"
    (single,) = merge([PHASES], both_ways=True)
    assert not single.both_ways


def test_one_open_message_opens_the_arrow() -> None:
    assert merge([PHASES], both_ways=False)[0].kind == "masked"
    assert merge([PHASES, KEYS], both_ways=False)[0].kind == "open"


def test_words_of_an_arrow() -> None:
    (arrow,) = merge([KEYS, PHASES, PHASES], both_ways=False)
    assert arrow.total == "66.6 MB"
    assert arrow.what == "phases + 1 more"
    assert arrow.tip.splitlines() == [
        "shop → bank: 66.6 MB",
        "public key: 32 B, open",
        "phases: 33.3 MB, masked",
        "phases: 33.3 MB, masked",
    ]
    (long,) = merge([Flow("a", "b", "w" * 200, 1, True), KEYS], both_ways=False)[:1]
    assert text_width(long.what, 11) <= 124


def test_unknown_sizes_are_said() -> None:
    sizes = [math.inf, -math.inf, math.nan]
    (arrow,) = merge([Flow("a", "b", "x", size, True) for size in sizes], both_ways=False)
    assert arrow.total == "n/a"


@pytest.mark.parametrize(("flows", "heads"), [([PHASES], 1), ([PHASES, ORDER], 2)])
def test_heads_show_the_directions(flows: list[Flow], heads: int) -> None:
    (arrow,) = merge(flows, both_ways=True)
    drawn = arrow_markup(arrow, Curve((0, 0), (50, 0), (100, 0)))
    root = parse(svg_root(100, 10, "test", [drawn]))
    points = [e.get("points") or "" for e in by_class(root, "head")]
    assert len(points) == heads
    assert points[0].startswith("100,0 90.9,")
    assert tooltips(root) == [arrow.tip]


def test_the_key_names_both_ends_even_if_one_is_long() -> None:
    flow = Flow("Credit Bureau of the Northern Region", "Nordbank", "phases", 1e6, True)
    (arrow,) = merge([flow], both_ways=False)
    root = parse(svg_root(290, 20, "test", [key_line_markup(7, arrow, 0, 16, 290)]))
    (words,) = (e.text or "" for e in by_class(root, "what"))
    assert words.startswith("Credit")
    assert words.endswith("… → Nordbank")


def test_locks_differ() -> None:
    assert lock_markup(0, 0, closed=True) != lock_markup(0, 0, closed=False)
