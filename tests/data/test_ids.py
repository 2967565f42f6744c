"""Ids in their written form: the rule, and what is counted."""

from __future__ import annotations

import datetime as dt
import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.data.ids import RULE, normalise, write_ids
from vertikal.errors import InputError


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (42, "42", True),
        (np.int64(42), " 42\t", True),
        ("\u00e9", "e\u0301", True),
        (-7, "-7", True),
        ("ab", "AB", False),
        ("042", 42, False),
        ("a b", "ab", False),
        ("ﬁ", "fi", False),
    ],
)
def test_the_rule(one, other, same):
    (first,), _ = write_ids([one])
    (second,), _ = write_ids([other])
    assert (first == second) == same
    assert "case kept" in RULE


@pytest.mark.parametrize(
    "column",
    [
        [3, 1, 2],
        (3, 1, 2),
        np.array([3, 1, 2], np.uint16),
        pd.Series([3, 1, 2]),
        pl.Series([3, 1, 2]),
        pa.array([3, 1, 2]),
        pa.chunked_array([[3], [1, 2]]),
        np.array(["3", "1", "2"]),
        pd.Series(["3", "1", "2"]),
        iter(["3", "1", "2"]),
    ],
)
def test_any_kind_of_column(column):
    ids = normalise("bank", column)
    assert ids.values == (b"3", b"1", b"2")
    assert len(ids) == 3


@given(st.lists(st.integers() | st.none() | st.text(max_size=3), max_size=30))
def test_counts_add_up(column):
    values, report = write_ids(column)
    assert report.rows == len(column) == len(values)
    assert report.missing + sum(report.kinds.values()) == report.rows
    present = [value for value in values if value]
    assert report.repeated == len(present) - len(set(present))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([], "there are none"),
        (["a", "", "  ", None, math.nan], "4 are missing or empty"),
        ([1, 2, "x"], "2 are a whole number and 1 are a text"),
        ([1.0, 2.0], "2 are of type float"),
        ([True, False], "2 are of type bool"),
        ([dt.date(2020, 1, 1)], "1 are of type date"),
        ([decimal.Decimal(3)], "1 are of type Decimal"),
        ([b"raw"], "1 are of type bytes"),
        (["a", "b", "a", "a "], "2 rows repeat the id of an earlier row"),
        (["a", "a", None], "1 are missing or empty; 1 rows repeat"),
    ],
)
def test_columns_that_are_no_ids(column, said):
    with pytest.raises(InputError) as caught:
        normalise("bank", column)
    assert str(caught.value).startswith(f"ids of bank: of {len(column)}, ")
    assert said in str(caught.value)


def test_digits_that_begin_with_zero_are_remarked_on():
    report = normalise("bank", ["007", "12", "0", "0x1"]).report
    assert report.with_zeros == 1
    assert "1 ids are digits that begin with 0" in report.remarks()[0]
    assert normalise("bank", [7, 12]).report.remarks() == []
