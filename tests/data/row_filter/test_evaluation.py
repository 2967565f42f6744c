"""Rows that a filter keeps: as SQLite keeps them, and for each kind of column."""

from __future__ import annotations

import datetime
import sqlite3
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertikal.data.row_filter.evaluation import kept_rows
from vertikal.data.row_filter.grammar import parse_filter
from vertikal.errors import InputError

VALUES = {"n": ["-1", "0", "1", "2.5"], "t": ["'a'", "'b'", "'it''s'"]}
COLUMN = st.sampled_from(["n", "t"])


@st.composite
def single_test(draw):
    column = draw(COLUMN)
    value = st.sampled_from(VALUES[column])
    kind = draw(st.sampled_from(["compare", "in", "between", "null"]))
    no = draw(st.sampled_from(["", "NOT "]))
    if kind == "compare":
        sign = draw(st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="]))
        return f"{column} {sign} {draw(value)}"
    if kind == "in":
        return f"{column} {no}IN ({', '.join(draw(st.lists(value, min_size=1, max_size=3)))})"
    if kind == "between":
        return f"{column} {no}BETWEEN {draw(value)} AND {draw(value)}"
    return f"{column} IS {no}NULL"


conditions = st.recursive(
    single_test(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("{} OR {}".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=6,
)
rows = st.lists(
    st.tuples(
        st.sampled_from([None, -1.0, 0.0, 1.0, 2.5, 7.0]),
        st.sampled_from([None, "a", "b", "it's", "z"]),
    ),
    max_size=12,
)


def kept(text, **columns):
    batch = pa.record_batch(list(map(pa.array, columns.values())), names=list(columns))
    return kept_rows("bank", parse_filter(text), batch).tolist()


@settings(max_examples=150, deadline=None)
@given(text=conditions, cells=rows)
def test_a_filter_keeps_the_rows_that_sqlite_keeps(text, cells):
    """SQLite is the naive twin: its own parser, and its own logic of three values."""
    with sqlite3.connect(":memory:") as twin:
        twin.execute("CREATE TABLE people (n REAL, t TEXT)")
        twin.executemany("INSERT INTO people VALUES (?, ?)", cells)
        found = twin.execute(f"SELECT coalesce({text}, 0) FROM people ORDER BY rowid").fetchall()
    batch = pa.record_batch(
        [
            pa.array([n for n, _ in cells], pa.float64()),
            pa.array([t for _, t in cells], pa.string()),
        ],
        names=["n", "t"],
    )
    assert kept_rows("bank", parse_filter(text), batch).tolist() == [bool(one) for (one,) in found]


DAY = datetime.date(2025, 1, 1)
NOON = datetime.datetime(2025, 1, 1, 12)


@pytest.mark.parametrize(
    ("cells", "text", "expected"),
    [
        (["5", " 07 ", None, ""], "x >= 6", [False, True, False, False]),
        (["5", "07", None, ""], "x = '07'", [False, True, False, False]),
        (["5", None, "", " "], "x IS NULL", [False, True, True, True]),
        (["2024-12-31", "2025-01-01", None], "x < '2025'", [True, False, False]),
        (["True", "0", None, "false"], "x", [True, False, False, False]),
        ([True, False, None], "x", [True, False, False]),
        ([True, False, None], "NOT x", [False, True, False]),
        ([True, False, None], "x = 1", [True, False, False]),
        ([1, 0, None], "x = TRUE", [True, False, False]),
        ([1.0, float("nan"), None], "x IS NULL", [False, True, True]),
        ([1.0, float("nan"), None], "x <> 2", [True, False, False]),
        ([2**60, 2**60 + 1], f"x = {2**60}", [True, False]),
        ([1, 2], f"x < {2**70}", [True, True]),
        ([Decimal("1.5"), Decimal("2.5")], "x > 2", [False, True]),
        ([DAY, None], "x <= '2025-01-01'", [True, False]),
        ([NOON, None], "x < '2025-01-01 12:00:01'", [True, False]),
        (
            pa.array([NOON], pa.timestamp("us", "Europe/Berlin")),
            "x BETWEEN '2025-01-01 12:00' AND '2025-01-01 12:00'",
            [True],
        ),
        (pa.array(["a", "b", None]).dictionary_encode(), "x IN ('b')", [False, True, False]),
        ([None, None], "x <> 1 OR x IS NULL", [True, True]),
        ([None, None], "x <> 1", [False, False]),
    ],
)
def test_each_kind_of_column(cells, text, expected):
    assert kept(text, x=cells) == expected


@pytest.mark.parametrize(
    ("cells", "text", "words"),
    [
        (["a", "1"], "x = 1", "column 'x' must be of numbers to be compared with 1, and has other"),
        (["maybe"], "x", "column 'x' must be of true and false"),
        ([1, 2], "x = '1'", "column 'x' is of numbers, and compared with the text '1'; write"),
        ([DAY], "x > 2024", "column 'x' is of dates or times .*; compare it with a text such as"),
        ([DAY], "x > 'last year'", ".*; compare it with a text such as '2025-01-31'"),
        ([[1, 2]], "x = 1", "column 'x' must be of numbers, text or dates, got list"),
    ],
)
def test_cells_that_cannot_be_compared_are_named_by_their_column(cells, text, words):
    with pytest.raises(InputError, match=f"rows of bank: {words}") as caught:
        kept(text, x=cells)
    assert "maybe" not in str(caught.value)
