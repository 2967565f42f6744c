"""Headings grow with their legend and keep its entries apart."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.reading import by_class, outside, overlapping, parse, texts
from vertikal.reporting.bar_chart import bar_chart
from vertikal.reporting.chart_heading import LegendEntry, colour_class, heading
from vertikal.reporting.line_chart import Series, line_chart

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=150), st.sets(names, max_size=12), st.sampled_from([200, 480, 1000]))
def test_nothing_overlaps_and_nothing_sticks_out(
    title: str, entries: set[str], width: float
) -> None:
    lines = line_chart([Series(name, [], []) for name in entries], title=title, width=width)
    bars = bar_chart({"a": dict.fromkeys(entries, 0.0)}, title=title, width=width, value_text=str)
    for root in (parse(lines), parse(bars)):
        areas = texts(root)
        assert overlapping(areas) == []
        assert outside(root, areas) == []


def test_without_title_and_legend_no_room_is_taken() -> None:
    assert heading("", (), 400).height == 0


def test_a_legend_that_fits_stays_in_one_row_and_a_long_one_forms_columns() -> None:
    short = heading("", [LegendEntry(n, "c1", "line") for n in ("a", "b", "c")], 400)
    long = heading("", [LegendEntry(f"series number {i}", "c1", "line") for i in range(7)], 400)
    assert len({entry.place.imag for entry in short.legend}) == 1
    assert len({entry.place.real for entry in long.legend}) == 2
    assert long.height > short.height


def test_a_name_that_was_cut_is_whole_in_its_tooltip() -> None:
    root = parse(line_chart([Series("n" * 200, [0], [0])], width=200))
    (entry,) = (g for g in root if by_class(g, "legend"))
    assert [e.text for e in entry if e.tag.endswith("title")] == ["n" * 200]


def test_colours_repeat_after_the_last() -> None:
    assert colour_class(0) == colour_class(8) == "c1"
