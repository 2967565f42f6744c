"""Line charts: well formed for any input, with gaps, tooltips and labels that keep apart."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.reading import (
    HOSTILE,
    by_class,
    outside,
    overlapping,
    parse,
    texts,
    tooltips,
)
from vertikal.reporting.line_chart import Series, line_chart

anything = st.floats()
ordinary = st.floats(min_value=-1e7, max_value=1e7)
series_of_anything = st.builds(
    lambda name, pairs, dashed: Series(name, [x for x, _ in pairs], [y for _, y in pairs], dashed),
    st.text(max_size=30),
    st.lists(st.tuples(anything, anything), max_size=25),
    st.booleans(),
)


def path_numbers(path: str) -> list[float]:
    return [float(value) for value in re.findall(r"-?\d+(?:\.\d+)?", path)]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(series_of_anything, max_size=4),
    st.text(max_size=40),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_any_input_gives_well_formed_svg_inside_its_frame(
    series: list[Series], words: str, log_x: bool, log_y: bool, diagonal: bool
) -> None:
    svg = line_chart(
        series,
        title=words,
        x_label=words,
        y_label=words,
        log_x=log_x,
        log_y=log_y,
        diagonal=diagonal,
    )
    root = parse(svg)
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    for path in by_class(root, "line"):
        numbers = path_numbers(path.get("d") or "")
        assert all(-1 <= value <= max(width, height) + 1 for value in numbers)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(ordinary, ordinary), min_size=1, max_size=20),
    st.booleans(),
    st.booleans(),
    st.sampled_from([260, 480, 1010]),
)
def test_labels_never_overlap_or_leave_the_frame(
    pairs: list[tuple[float, float]], log_x: bool, log_y: bool, width: float
) -> None:
    series = [Series("a line", [x for x, _ in pairs], [y for _, y in pairs])]
    root = parse(
        line_chart(
            series, title="T", x_label="x", y_label="y", log_x=log_x, log_y=log_y, width=width
        )
    )
    areas = texts(root)
    assert overlapping(areas) == []
    assert outside(root, areas) == []


def test_non_finite_points_leave_a_gap() -> None:
    whole = parse(line_chart([Series("a", range(6), [1, 2, 3, 4, 5, 6])]))
    broken = parse(line_chart([Series("a", range(6), [1, 2, math.nan, 4, math.inf, 6])]))
    # The first line is the sample in the legend.
    assert (by_class(whole, "line")[1].get("d") or "").count("M") == 1
    assert (by_class(broken, "line")[1].get("d") or "").count("M") == 3
    assert len(by_class(broken, "dot")) == 4
    gap = parse(line_chart([Series("a", range(5), [1, 2, math.nan, 4, 5])]))
    assert (by_class(gap, "line")[1].get("d") or "").count("M") == 2


def test_non_positive_values_leave_a_gap_on_a_log_axis_only() -> None:
    series = [Series("a", [1, 2, 3, 4, 5], [1, 10, 0, 10, 1])]
    assert len(by_class(parse(line_chart(series)), "dot")) == 5
    assert len(by_class(parse(line_chart(series, log_y=True)), "dot")) == 4


def test_lone_points_of_a_long_line_are_drawn_as_dots() -> None:
    y = [float(i) if i % 50 == 0 or i > 200 else math.nan for i in range(400)]
    root = parse(line_chart([Series("a", range(400), y)]))
    assert (by_class(root, "line")[1].get("d") or "").count("h0") == 4
    assert len(by_class(root, "spot")) <= 24


@pytest.mark.parametrize(
    "series",
    [[], [Series("a", [], [])], [Series("a", [1, 2], [math.nan, math.inf])]],
    ids=["no series", "empty series", "nothing finite"],
)
def test_no_data_is_said_and_not_measured(series: list[Series]) -> None:
    root = parse(line_chart(series, title="T"))
    assert [e.text for e in by_class(root, "none")] == ["no data"]
    assert by_class(root, "tick") == []


def test_an_empty_series_beside_others_is_named_as_such() -> None:
    root = parse(line_chart([Series("full", [1, 2], [1, 2]), Series("gone", [], [])]))
    assert [e.text for e in by_class(root, "legend")] == ["full", "gone (no data)"]


def test_long_lines_are_thinned_and_short_ones_marked() -> None:
    x = np.linspace(0, 1, 50_000)
    long = line_chart([Series("a", x, np.sin(9 * x))])
    assert (by_class(parse(long), "line")[1].get("d") or "").count("L") <= 400
    assert len(long) < 12_000
    short = parse(line_chart([Series("bank", [1, 2, 3], [0.5, 0.25, 0.125])]))
    assert len(by_class(short, "dot")) == 3
    assert "bank\nx 3, y 0.125" in tooltips(short)


def test_points_lie_where_the_axes_say() -> None:
    root = parse(line_chart([Series("", [0, 5, 10], [0, 1, 4])], width=400, height=300))
    dots = [(float(e.get("cx") or 0), float(e.get("cy") or 0)) for e in by_class(root, "dot")]
    grid = [path_numbers(e.get("d") or "") for e in by_class(root, "grid")]
    left, bottom, right = grid[0]
    top = grid[-1][1]
    assert dots[0] == pytest.approx((left, bottom))
    assert dots[1] == pytest.approx(((left + right) / 2, bottom - (bottom - top) / 4), abs=0.1)
    assert dots[2] == pytest.approx((right, top))


def test_the_diagonal_runs_from_corner_to_corner_of_a_unit_square() -> None:
    root = parse(line_chart([Series("", [0, 1], [0, 1])], diagonal=True))
    assert by_class(root, "diagonal")[0].get("d") == by_class(root, "line")[0].get("d")
    apart = parse(line_chart([Series("", [0, 1], [5, 6])], diagonal=True))
    assert by_class(apart, "diagonal") == []
    mixed = parse(line_chart([Series("", [1, 100], [1, 100])], diagonal=True, log_x=True))
    assert by_class(mixed, "diagonal") == []


def test_a_lone_peak_and_a_wild_line_keep_their_shape() -> None:
    x = np.arange(20_000)
    peak = parse(line_chart([Series("", x, x == 4321)]))
    heights = path_numbers(by_class(peak, "line")[0].get("d") or "")[1::2]
    assert sum(height < 100 for height in heights) == 1
    wild = line_chart([Series("", x, np.where(x % 2, -1.0, 1.0))])
    assert len(wild) < 15_000


def test_a_series_has_as_many_x_as_y() -> None:
    with pytest.raises(ValueError, match=r"series 'a'.*same length, got 2 and 1"):
        Series("a", [1, 2], [1])


def test_dashes_and_colours_tell_ten_lines_apart() -> None:
    series = [Series(f"s{i}", [0, 1], [i, i], dashed=i == 3) for i in range(10)]
    root = parse(line_chart(series))
    looks = {
        (group.get("class"), line.get("class"))
        for group in root.iter()
        for line in group
        if "line" in (line.get("class") or "").split()
    }
    assert len(looks) == 10


def test_hostile_text_stays_text() -> None:
    svg = line_chart([Series(HOSTILE, [1], [1])], title=HOSTILE, x_label=HOSTILE, y_label=HOSTILE)
    root = parse(svg)
    assert "<script" not in svg
    assert "<script>alert(1)</script>" in (root.get("aria-label") or "")
