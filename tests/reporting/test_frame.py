"""Headings grow with their legend and keep its entries apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.reading import outside, overlapping, parse, texts
from vertikal.reporting.frame import LegendEntry, colour_class, dash_class, heading
from vertikal.reporting.markup import svg_root

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


@given(st.text(max_size=150), st.lists(names, max_size=12), st.floats(200, 1000), st.booleans())
def test_nothing_overlaps_and_nothing_sticks_out(
    title: str, entries: list[str], width: float, filled: bool
) -> None:
    legend = [LegendEntry(name, colour_class(i), "", filled) for i, name in enumerate(entries)]
    head = heading(title, legend, 0, width)
    root = parse(svg_root(width, max(head.height, 1), "test", [head.markup]))
    areas = texts(root)
    assert overlapping(areas) == []
    assert outside(root, areas) == []


def test_without_title_and_legend_no_room_is_taken() -> None:
    assert heading("", (), 0, 400).height == 0


def test_a_legend_that_fits_stays_in_one_row_and_a_long_one_forms_columns() -> None:
    short = heading("", [LegendEntry(n, "c1") for n in ("a", "b", "c")], 0, 400)
    long = heading("", [LegendEntry(f"series number {i}", "c1") for i in range(7)], 0, 400)
    assert len({area.top for area in texts(parse(svg_root(1, 1, "t", [short.markup])))}) == 1
    places = texts(parse(svg_root(1, 1, "t", [long.markup])))
    assert len({area.left for area in places}) == 2
    assert long.height > short.height


def test_colours_repeat_with_another_line() -> None:
    assert colour_class(0) == colour_class(8) == "c1"
    assert dash_class(0, dashed=False) == ""
    assert dash_class(8, dashed=False) == "dots"
    assert dash_class(8, dashed=True) == "dash"
