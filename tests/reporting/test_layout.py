"""Geometry of the flow diagram, by hand and for random graphs."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.reporting.layout import (
    Curve,
    Rect,
    connect,
    find_hub,
    place_labels,
    place_parties,
)


def test_hub_is_the_party_in_every_exchange() -> None:
    parties = ["a", "b", "c", "d"]
    assert find_hub(parties, {("b", "a"), ("c", "a"), ("a", "d")}) == "a"
    assert find_hub(parties, {("b", "a"), ("c", "d")}) is None
    assert find_hub(parties, set()) is None
    # Two partners have no middle, and three parties make a triangle.
    assert find_hub(parties, {("b", "a"), ("a", "b")}) is None
    assert find_hub(parties[:3], {("b", "a"), ("c", "a")}) is None


@pytest.mark.parametrize("count", range(1, 13))
@pytest.mark.parametrize("with_hub", [False, True])
def test_boxes_stay_apart_and_inside(count: int, with_hub: bool) -> None:
    parties = [f"p{i}" for i in range(count)]
    hub = "p0" if with_hub and count > 3 else None
    places = place_parties(parties, hub, (400, 300), (330, 275))
    assert set(places) == set(parties)
    boxes = [Rect(x, y, 140, 50) for x, y in places.values()]
    assert not any(a.overlaps(b, 4) for a, b in itertools.combinations(boxes, 2))
    assert all(70 <= box.x <= 730 and 25 <= box.y <= 575 for box in boxes)


def test_two_parties_face_each_other_first_one_left() -> None:
    places = place_parties(["a", "b"], None, (100, 50), (80, 30))
    assert places["a"] == pytest.approx((20, 50))
    assert places["b"] == pytest.approx((180, 50))


def test_an_arrow_leaves_and_enters_at_the_edges() -> None:
    curve = connect(Rect(0, 0, 40, 20), Rect(200, 0, 40, 20), 0)
    assert curve.start == pytest.approx((23, 0))
    assert curve.end == pytest.approx((175, 0))
    assert curve.at(0.5) == pytest.approx((99.5, 0))


def test_there_and_back_bow_to_different_sides() -> None:
    here, there = Rect(0, 0, 40, 20), Rect(200, 0, 40, 20)
    out, back = connect(here, there, 30), connect(there, here, 30)
    assert out.at(0.5)[1] == pytest.approx(-back.at(0.5)[1])
    assert abs(out.at(0.5)[1] - back.at(0.5)[1]) > 25


@given(
    st.lists(
        st.tuples(*[st.floats(0, 800)] * 4).filter(lambda q: math.dist(q[:2], q[2:]) > 60),
        max_size=15,
    ),
    st.floats(10, 120),
)
def test_placed_labels_are_free(ends: list[tuple[float, ...]], width: float) -> None:
    curves = [Curve((a, b), ((a + c) / 2, (b + d) / 2), (c, d)) for a, b, c, d in ends]
    box = Rect(400, 400, 140, 50)
    sizes = [(width, 20.0)] * len(curves)
    placed = place_labels(curves, sizes, [box])
    if placed is not None:
        assert not any(a.overlaps(b, 0) for a, b in itertools.combinations([*placed, box], 2))
    forced = place_labels(curves, sizes, [box], force=True)
    assert forced is not None
    assert len(forced) == len(curves)


def test_no_room_is_admitted() -> None:
    curves = [Curve((0, 0), (10, 0), (20, 0))] * 2
    assert place_labels(curves, [(50, 20)] * 2, []) is None
