"""Bar charts: lengths in proportion, totals in words, nothing clipped."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.reading import (
    HOSTILE,
    by_class,
    outside,
    overlapping,
    parse,
    rects,
    texts,
    tooltips,
)
from vertikal.reporting.bar_chart import bar_chart
from vertikal.reporting.units import bytes_text, seconds_text

anything = st.dictionaries(
    st.text(max_size=40), st.dictionaries(st.text(max_size=12), st.floats(), max_size=5), max_size=6
)
ordinary = st.lists(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1e6), min_size=1),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=40)
@given(anything, st.text(max_size=40), st.sampled_from([300, 720, 1010]))
def test_any_input_gives_well_formed_svg(
    bars: dict[str, dict[str, float]], title: str, width: float
) -> None:
    root = parse(bar_chart(bars, title=title, width=width, value_text=seconds_text))
    assert outside(root, rects(root, "bar")) == []


@settings(deadline=None, max_examples=40)
@given(ordinary)
def test_labels_never_overlap_or_leave_the_frame(parts: list[dict[str, float]]) -> None:
    bars = {f"stage {i}": part for i, part in enumerate(parts)}
    root = parse(bar_chart(bars, title="T", value_text=seconds_text))
    assert overlapping(texts(root)) == []
    assert outside(root, texts(root)) == []


def test_lengths_are_in_proportion_and_stacked() -> None:
    root = parse(
        bar_chart(
            {"fit": {"bank": 30, "shop": 10}, "predict": {"shop": 20}},
            value_text=seconds_text,
            width=720,
        )
    )
    assert [e.text for e in by_class(root, "legend")] == ["bank", "shop"]
    bars = [bar for bar in rects(root, "bar") if bar.right > bar.left]
    lengths = [bar.right - bar.left + 1 for bar in bars]
    assert lengths[0] == pytest.approx(3 * lengths[1], abs=0.4)
    assert lengths[2] == pytest.approx(2 * lengths[1], abs=0.4)
    assert bars[1].left == pytest.approx(bars[0].right + 1, abs=0.2)
    assert [e.text for e in by_class(root, "value")] == ["40.0 s", "20.0 s"]
    assert "fit, bank: 30.0 s" in tooltips(root)


def test_values_stand_inside_only_where_they_say_more_than_the_total() -> None:
    bars = {"a": {"x": 10, "y": 9, "z": 0.1}, "b": {"x": 8}}
    root = parse(bar_chart(bars, value_text="{:g}".format))
    assert [e.text for e in by_class(root, "inside")] == ["10", "9"]


def test_unknown_parts_are_admitted() -> None:
    root = parse(
        bar_chart(
            {"a": {"x": 1e6, "y": math.nan}, "b": {"x": -1.0}, "c": {"x": 0.0}, "d": {}},
            value_text=bytes_text,
        )
    )
    assert [e.text for e in by_class(root, "value")] == [
        "1.0 MB + n/a",
        "no data",
        "0 B",
        "no data",
    ]


def test_no_bars() -> None:
    root = parse(bar_chart({}, title="T", value_text=seconds_text))
    assert [e.text for e in by_class(root, "none")] == ["no data"]


def test_hostile_text_stays_text() -> None:
    svg = bar_chart({HOSTILE: {HOSTILE: 1.0, "b": 2.0}}, title=HOSTILE, value_text=seconds_text)
    parse(svg)
    assert "<script" not in svg
