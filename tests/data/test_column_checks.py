"""Columns that no program can use are refused, with their party and title."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vertikal.data import column_checks
from vertikal.data.column_checks import check_columns, column_bounds
from vertikal.data.tables import Table
from vertikal.errors import InputError


def table_of(values, form=np.asarray):
    names = tuple(f"c{i}" for i in range(values.shape[1]))
    return Table("shop", names, form(values))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("cells", "word"),
    [
        ([np.nan], r"NaN \(a missing value\)"),
        ([np.inf], "infinity"),
        ([-np.inf], "infinity"),
        ([np.inf, -np.inf], "infinity"),
        ([np.inf, np.nan], r"NaN \(a missing value\)"),
    ],
)
def test_cells_that_are_not_finite(form, cells, word):
    values = np.random.default_rng(0).normal(size=(9, 3))
    values[4 : 4 + len(cells), 1] = cells
    pattern = (
        rf"^columns: column 'c1' of party 'shop' must hold finite numbers, got {word}; drop .*$"
    )
    with pytest.raises(InputError, match=pattern) as caught:
        check_columns(table_of(values, form), varying=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool])
def test_bounds_of_many_rows_are_those_of_all(monkeypatch, dtype):
    monkeypatch.setattr(column_checks, "PART", 20)  # six rows of three cells
    values = (100 * np.random.default_rng(1).normal(size=(100, 3))).astype(dtype)
    for rows in (1, 6, 7, 100):
        low, high = column_bounds(values[:rows])
        assert low.dtype == high.dtype == dtype
        np.testing.assert_array_equal(low, values[:rows].min(axis=0))
        np.testing.assert_array_equal(high, values[:rows].max(axis=0))


@pytest.mark.parametrize("row", [0, 50, 99])
def test_a_missing_cell_is_found_in_any_part(monkeypatch, row):
    monkeypatch.setattr(column_checks, "PART", 20)
    values = np.random.default_rng(2).normal(size=(100, 3))
    values[row, 2] = np.nan
    for bound in column_bounds(values):
        np.testing.assert_array_equal(np.isnan(bound), [False, False, True])


def test_large_but_finite_cells_pass():
    values = np.array([[1.5e308, 1.0], [1.7e308, 2.0]])
    check_columns(table_of(values), varying=True)


def test_a_constant_column_is_refused_when_training_and_taken_when_predicting():
    values = np.column_stack([np.arange(5.0), np.full(5, 2.5)])
    pattern = r"^columns: column 'c1' of party 'shop' must vary, got a constant \(2.5 in .*drop"
    with pytest.raises(InputError, match=pattern):
        check_columns(table_of(values), varying=True)
    check_columns(table_of(values), varying=False)
    check_columns(table_of(values, sparse.csr_array), varying=True)
