"""A party's table: blocks of rows in double precision, dense or sparse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.reused_memory import reused_memory

VALUES = np.arange(12).reshape(6, 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_blocks_come_in_double_precision(dtype):
    table = Table("shop", ("a", "b"), VALUES.astype(dtype))
    block = table.block(slice(1, 4))
    assert block.dtype == np.float64
    assert block.flags.c_contiguous
    np.testing.assert_array_equal(block, VALUES.astype(dtype)[1:4])
    assert (table.rows, table.width, table.is_sparse) == (6, 2, False)


def test_blocks_of_some_columns_are_copies_of_their_own():
    wide = np.arange(400_000.0).reshape(100_000, 4)
    table = Table("shop", ("a", "b"), wide[:, 1:3])
    with reused_memory():
        first, second = table.block(slice(0, 50_000)), table.block(slice(50_000, 100_000))
        np.testing.assert_array_equal(first, wide[:50_000, 1:3])
        np.testing.assert_array_equal(second, wide[50_000:, 1:3])
        assert first.flags.c_contiguous


def test_rows_may_be_listed():
    table = Table("shop", ("a", "b"), VALUES)
    np.testing.assert_array_equal(table.block(np.array([4, 0, 4])), VALUES[[4, 0, 4]])


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_blocks_stay_sparse(form):
    table = Table("shop", ("a", "b"), form(VALUES))
    block = table.block(slice(1, 4))
    assert table.is_sparse
    assert sparse.issparse(block)
    assert block.format == "csr"
    assert block.dtype == np.float64
    np.testing.assert_array_equal(block.toarray(), VALUES[1:4])
    np.testing.assert_array_equal(table.block(np.array([5, 2])).toarray(), VALUES[[5, 2]])


def test_messages_speak_of_a_column_by_name_and_party():
    assert Table("shop", ("a", "b"), VALUES).title(1) == "column 'b' of party 'shop'"


@pytest.mark.parametrize("height", [1, 4, 6, 100])
def test_spans_cover_each_row_once(height):
    table = Table("shop", ("a", "b"), VALUES)
    spans = table.spans(height)
    assert [row for span in spans for row in range(6)[span]] == list(range(6))
    assert all(span.stop - span.start <= height for span in spans)


def test_a_table_of_another_width_is_refused():
    with pytest.raises(InputError, match=r"^table of shop must be 3 columns wide, got 2$"):
        Table("shop", ("a", "b", "c"), VALUES)
