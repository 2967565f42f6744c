"""Thinning keeps ends, peaks, gaps and its promise about the number of points."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from vertikal.reporting.thinning import even_picks, runs_of, thin, thin_run

coordinates = st.floats(min_value=-1000, max_value=1000)
points = st.tuples(coordinates, coordinates)


@given(st.lists(st.none() | points, max_size=60))
def test_runs_are_the_input_without_its_gaps(values: list[tuple[float, float] | None]) -> None:
    runs = runs_of(values)
    assert [p for run in runs for p in run] == [p for p in values if p is not None]
    assert all(runs)


def test_runs_split_at_gaps() -> None:
    a, b, c = (0.0, 0.0), (1.0, 1.0), (2.0, 2.0)
    assert runs_of([None, a, b, None, None, c, None]) == ((a, b), (c,))
    assert runs_of([None]) == ()


@given(st.lists(points, min_size=1, max_size=300), st.integers(2, 50))
def test_a_thinned_run_keeps_ends_order_and_limit(
    run: list[tuple[float, float]], limit: int
) -> None:
    kept = thin_run(tuple(run), limit)
    assert len(kept) == min(len(run), limit) or len(run) == 1
    assert kept[0] == run[0]
    assert kept[-1] == run[-1]
    remaining = iter(run)
    assert all(point in remaining for point in kept)


def test_a_lone_peak_survives() -> None:
    run = tuple((float(i), 100.0 if i == 4321 else 0.0) for i in range(10_000))
    assert (4321.0, 100.0) in thin_run(run, 50)


def test_a_smooth_curve_stays_within_a_pixel() -> None:
    run = tuple((i / 20, 100 * math.sin(i / 2000)) for i in range(10_000))
    kept = thin_run(run, 400)
    for (x0, y0), (x1, y1) in itertools.pairwise(kept):
        middle = (x0 + x1) / 2
        straight = (y0 + y1) / 2
        assert abs(straight - 100 * math.sin(middle * 20 / 2000)) < 1


@given(
    st.lists(st.lists(points, min_size=1, max_size=40).map(tuple), max_size=60),
    st.integers(4, 60),
)
def test_all_runs_together_respect_the_limit(
    runs: list[tuple[tuple[float, float], ...]], limit: int
) -> None:
    total = sum(len(run) for run in thin(runs, limit))
    # A run has at least its two ends, hence the room above the limit.
    assert total <= 2 * limit
    if sum(len(run) for run in runs) <= limit:
        assert thin(runs, limit) == tuple(runs)


def test_even_picks() -> None:
    assert even_picks(3, 5) == (0, 1, 2)
    assert even_picks(101, 3) == (0, 50, 100)
    assert even_picks(10, 1) == (0,)
