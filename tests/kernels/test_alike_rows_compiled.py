"""Rows that are alike: numbered as a dictionary numbers them, and worked on once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

pytest.importorskip("numba")

from vertikal.kernels import alike_rows_compiled, phase_loops_compiled
from vertikal.kernels.phase_loops import CompiledLoops

CELLS = st.tuples(st.integers(0, 3), st.sampled_from([1.0, -1.0, 2.0, 0.1, 2.0**-40]))
ROWS = st.lists(st.lists(CELLS, max_size=5), max_size=40)


def listed(rows):
    cells = np.array([value for row in rows for _, value in row], np.float64)
    places = np.array([place for row in rows for place, _ in row], np.int32)
    starts = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    return cells.view(np.uint64), places, starts


def numbered(rows, room):
    given = listed(rows)
    kinds, firsts = np.full(len(rows), -7), np.full(room, -7)
    count = alike_rows_compiled.number_alike(*given, kinds, firsts)
    return given, kinds, firsts, count


def naive(rows):
    """The number of each row's kind, and the first row of each kind."""
    seen = {}
    kinds = [seen.setdefault(tuple(row), len(seen)) for row in rows]
    return kinds, [kinds.index(kind) for kind in range(len(seen))]


@settings(deadline=None)
@given(ROWS)
def test_rows_are_numbered_as_by_a_dictionary(rows):
    _, kinds, firsts, count = numbered(rows, len(rows))
    expected, first = naive(rows)
    assert count == len(first)
    assert kinds.tolist() == expected
    assert firsts[:count].tolist() == first


@settings(deadline=None)
@given(ROWS)
def test_more_kinds_than_there_is_room_for_are_given_up(rows):
    distinct = len(naive(rows)[1])
    for room in range(distinct):
        assert numbered(rows, room)[-1] == -1
    assert numbered(rows, distinct)[-1] == distinct


@settings(deadline=None)
@given(ROWS)
def test_the_first_of_each_kind_is_kept(rows):
    (bits, places, starts), _, firsts, count = numbered(rows, len(rows))
    alike_rows_compiled.keep(bits, places, starts, firsts[:count])
    kept = [rows[first] for first in naive(rows)[1]]
    end = sum(map(len, kept))
    assert starts[: count + 1].tolist() == listed(kept)[2].tolist()
    assert places[:end].tolist() == listed(kept)[1].tolist()
    assert bits[:end].tolist() == listed(kept)[0].tolist()


@pytest.mark.parametrize(
    "rows",
    [
        [[(0, float(value))] for value in range(1, 2001)],
        [[(place, 1.0)] for place in range(2000)],
        [[(0, 1.0)] * length for length in range(100)],
    ],
    ids=["values", "places", "lengths"],
)
def test_rows_that_differ_in_one_thing_are_unlike(rows):
    """So many that hashes of some meet in the table."""
    assert numbered([*rows, *rows], len(rows))[1].tolist() == 2 * list(range(len(rows)))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kinds", [1, 7, 128, 129, 256])
def test_phases_are_those_of_every_row_by_itself(kinds, form, added, dtype):
    """128 kinds among 256 rows are computed once each, 129 are too many for that."""
    generator = np.random.default_rng(kinds)
    distinct = generator.normal(size=(kinds, 12)) * (generator.random((kinds, 12)) < 0.3)
    which = np.concatenate([np.arange(kinds), generator.integers(0, kinds, 256 - kinds)])
    block = distinct[generator.permutation(which)]
    steps, offsets = generator.normal(0, 1e3, (12, 33)), generator.random(33) * 256
    there = generator.integers(0, 256, (256, 33)).astype(dtype)
    out, loops = there.copy(), CompiledLoops()
    assert loops.project(form(block), steps, offsets, out, added=added) is True
    for row in range(256):
        alone = there[[row]]
        assert loops.project(form(block[[row]]), steps, offsets, alone, added=added) is True
        assert np.array_equal(out[[row]], alone)


def test_each_kind_is_computed_once(monkeypatch):
    loops, computed = CompiledLoops(), []
    original = phase_loops_compiled.project

    def recorded(*given):
        computed.append(len(given[-1]))
        return original(*given)

    monkeypatch.setattr(phase_loops_compiled, "project", recorded)
    block = np.eye(4)[np.arange(100) % 3]
    loops.project(block, np.ones((4, 8)), np.zeros(8), np.empty((100, 8), np.uint8))
    assert computed == [3]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 2.0**60])
def test_a_row_without_phases_is_refused_though_others_are_like_it(bad):
    block = np.zeros((64, 3))
    block[::2, 1] = bad
    out = np.empty((64, 5), np.uint8)
    assert CompiledLoops().project(block, np.ones((3, 5)), np.zeros(5), out) is False
