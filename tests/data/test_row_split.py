"""Rows held out of training: how many, which, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from vertikal.data.row_split import (
    cut_groups,
    cut_rows,
    cut_times,
    hold_out,
    hold_out_groups,
    hold_out_last,
    hold_out_rows,
    read_groups,
    read_times,
)
from vertikal.data.sources import open_source
from vertikal.errors import InputError


def draw(seed=0):
    return np.random.default_rng(seed)


def source(**columns):
    return open_source("bank", pa.table(columns))


@pytest.mark.parametrize(("rows", "share", "held"), [(10, 0.2, 2), (10, 0.01, 1), (10, 0.99, 9)])
def test_a_share_of_the_rows_is_held_out(rows, share, held):
    found = hold_out_rows(rows, share, draw())
    assert found.sum() == held
    assert (hold_out_rows(rows, share, draw()) == found).all()
    others = [hold_out_rows(rows, share, draw(seed)) for seed in range(1, 9)]
    assert any((one != found).any() for one in others)


def test_groups_are_not_parted():
    groups = draw().integers(0, 12, 300)
    held = hold_out_groups(groups, 0.25, draw(1))
    assert not set(groups[held]) & set(groups[~held])
    assert 40 <= held.sum() <= 110


def test_the_last_rows_by_time_and_no_time_on_both_sides():
    times = np.array([3, 1, 2, 2, 5, 4, 4, 1, 0, 0])
    held = hold_out_last(times, 0.3)
    assert held.tolist() == [times_ >= 4 for times_ in times]
    assert hold_out_last(times, 0.001).sum() == 1
    assert hold_out_last(times, 0.999).sum() == 8


def test_one_group_cannot_be_parted():
    with pytest.raises(InputError, match="two groups or times at least"):
        hold_out_groups(np.zeros(5), 0.5, draw())
    with pytest.raises(InputError, match="two groups or times at least"):
        hold_out_last(np.zeros(5), 0.5)


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-01-31", "2023-12-01", "2024-01-31", "2024-02-01T10:00"],
        [9.5, 2, 9.5, 10],
        ["9", "2.5", "9", "10"],
        pa.array([40, 2, 40, 50], pa.date32()),
    ],
)
def test_times_are_numbers_dates_or_text_that_is_one(cells):
    table = source(when=cells)
    assert read_times(table, "when", np.arange(4)).tolist() == [1, 0, 1, 2]
    assert read_times(table, "when", np.array([3, 1])).tolist() == [1, 0]


def test_text_that_is_no_time_is_refused():
    with pytest.raises(InputError, match="2024-01-31"):
        read_times(source(when=["31.12.2023", "1.1.2024"]), "when", np.arange(2))
    with pytest.raises(InputError, match="with or without a zone"):
        read_times(source(when=["2024-01-31", "2024-01-31T00:00+01:00"]), "when", np.arange(2))


def test_rows_are_held_out_by_one_column_or_at_random():
    table = source(house=["x", "y", "x", "z"], month=[4, 3, 2, 1])
    rows = np.array([3, 2, 1, 0])
    assert hold_out(table, rows, 0.25, draw(), time="month").tolist() == [False] * 3 + [True]
    by_house = hold_out(table, rows, 0.25, draw(), group="house")
    assert by_house[1] == by_house[3]
    assert (hold_out(table, rows, 0.25, draw()) == hold_out_rows(4, 0.25, draw())).all()


def test_groups_are_whatever_can_be_told_apart():
    table = source(house=["x", "y", " x", "z"], number=[1.0, 2.0, 1.0, None])
    assert read_groups(table, "house", np.arange(4)).tolist() == [0, 1, 0, 2]
    assert read_groups(table, "number", np.arange(3)).tolist() == [0, 1, 0]
    with pytest.raises(InputError, match="1 of 4 cells are missing"):
        read_groups(table, "number", np.arange(4))
    with pytest.raises(InputError, match="by one of the columns"):
        read_groups(table, "street", np.arange(4))


def test_rows_are_cut_into_parts_with_the_same_share_of_each_kind():
    kinds = np.repeat([0, 1, 2], [50, 21, 4])
    parts = cut_rows(kinds, 4, draw())
    for kind in range(3):
        counts = np.bincount(parts[kinds == kind], minlength=4)
        assert np.ptp(counts) <= 1
    assert (parts == cut_rows(kinds, 4, draw())).all()
    assert (parts != cut_rows(kinds, 4, np.random.default_rng(5))).any()
    with pytest.raises(InputError, match="folds must be at most 3"):
        cut_rows(np.zeros(3), 4, draw())


def test_groups_are_cut_whole_into_parts_of_about_one_size():
    groups = np.repeat(np.arange(8), [30, 5, 5, 5, 5, 5, 5, 30])
    parts = cut_groups(groups, 3, draw())
    assert all(len(set(parts[groups == group])) == 1 for group in range(8))
    assert sorted(np.bincount(parts)) == [30, 30, 30]
    with pytest.raises(InputError, match="folds must be at most 2"):
        cut_groups(np.array([1, 1, 2]), 3, draw())


def test_folds_by_time_follow_one_another():
    times = np.array([3, 1, 2, 2, 5, 4, 4, 1, 0, 0, 6, 7])
    found = cut_times(times, 3)
    assert set(found.tolist()) == {0, 1, 2, 3}
    for part in range(3):
        assert times[found == part].max() < times[found == part + 1].min()
    assert np.ptp(np.bincount(found)) <= 2
    with pytest.raises(InputError, match="folds must be at most 1, by the times that there are"):
        cut_times(np.array([1, 1, 2, 2]), 2)
