"""Encodings of columns for kernels: formulas, replay, bounds, and what they do with odd columns."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm

from vertikal.data.encoding import (
    ENCODINGS,
    MOST_FREQUENT,
    MOST_KNOTS,
    TWO_VALUES,
    Encoding,
    learn_encoding,
)
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.records import convert, from_json

LARGEST_SMOOTH = 3.0 / 0.02 * 2
"""Both ends of the bend, over the least deviation."""


def table_of(*columns, form=np.asarray):
    values = np.column_stack([np.asarray(column, float) for column in columns])
    return Table("shop", tuple(f"c{i}" for i in range(values.shape[1])), form(values))


def encoded(encoding, *columns, form=np.asarray):
    block = encoding.apply(table_of(*columns, form=form)).block(slice(None))
    return block.toarray() if sparse.issparse(block) else block


def test_smooth_bends_quartile_units_and_has_unit_deviation():
    x = np.random.default_rng(0).standard_t(2, 501)
    (made,) = encoded(learn_encoding(table_of(x), "smooth"), x).T
    low, median, high = np.quantile(x, (0.25, 0.5, 0.75))
    z = (x - median) / (high - low) * 1.35
    bent = z / np.sqrt(1 + (z / 3) ** 2)
    np.testing.assert_allclose(made, (bent - bent.mean()) / bent.std(), atol=2e-6)


def plain_places(x):
    """The place of each cell: half of its own value's root of frequency, and all of those below."""
    values, counts = np.unique(x, return_counts=True)
    weights = dict(zip(values, np.sqrt(counts), strict=True))
    total = sum(weights.values())
    return np.array(
        [(sum(w for v, w in weights.items() if v < cell) + weights[cell] / 2) / total for cell in x]
    )


def test_places_count_a_value_by_the_root_of_its_frequency():
    x = np.random.default_rng(1).poisson(2, 300)
    (quantile,) = encoded(learn_encoding(table_of(x), "quantile"), x).T
    (normal,) = encoded(learn_encoding(table_of(x), "normal"), x).T
    np.testing.assert_allclose(quantile, (plain_places(x) - 0.5) * np.sqrt(12), atol=1e-6)
    np.testing.assert_allclose(normal, norm.ppf(plain_places(x)), atol=1e-6)


def test_a_long_column_is_kept_by_few_knots_that_lose_little():
    x = np.random.default_rng(2).lognormal(size=20_000)
    encoding = learn_encoding(table_of(x), "quantile")
    (column,) = encoding.encoded
    assert len(column.knots) <= MOST_KNOTS
    (made,) = encoded(encoding, x).T
    exact = (np.argsort(np.argsort(x)) + 0.5) / len(x)
    assert np.abs(made / np.sqrt(12) + 0.5 - exact).max() < 2e-3


def test_a_wide_table_has_fewer_knots():
    rows = np.random.default_rng(3).normal(size=(1200, 1500))
    encoding = learn_encoding(Table("shop", tuple(map(str, range(1500))), rows), "normal")
    assert len(msgspec.json.encode(encoding)) < 20_000_000


@pytest.mark.parametrize("kind", ENCODINGS)
def test_two_values_are_centred_and_weighed(kind):
    x = np.repeat([5.0, 9.0], [30, 10])
    (made,) = encoded(learn_encoding(table_of(x), kind), x).T
    np.testing.assert_allclose(made, ((x == 9.0) - 0.25) * TWO_VALUES, atol=1e-7)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_a_spike_gets_a_column_for_each_frequent_value(kind):
    generator = np.random.default_rng(4)
    x = np.concatenate([np.zeros(80), np.full(15, 7.5), generator.uniform(10, 20, 5)])
    other = generator.normal(size=100)
    encoding = learn_encoding(table_of(other, x), kind)
    assert encoding.titles == ("c0", "c1", "c1 = 0", "c1 = 7.5")
    assert encoding.parents == (0, 1, 1, 1)
    made = encoded(encoding, other, x)
    np.testing.assert_allclose(made[:, 2], ((x == 0) - 0.8) * TWO_VALUES, atol=1e-6)
    np.testing.assert_allclose(made[:, 3], ((x == 7.5) - 0.15) * TWO_VALUES, atol=1e-6)


def test_no_column_gets_more_than_so_many_frequent_values():
    x = np.concatenate([np.zeros(5000), np.repeat(np.arange(1, 201), 20)])
    encoding = learn_encoding(table_of(x), "smooth")
    assert encoding.width == 1 + MOST_FREQUENT


@pytest.mark.parametrize("kind", ENCODINGS)
def test_constant_columns_are_left_out_with_a_remark(kind):
    encoding = learn_encoding(table_of([1, 2, 3], [4, 4, 4]), kind)
    assert encoding.parents == (0,)
    assert encoding.remarks == ("column 'c1' of party 'shop' is constant and was ignored",)
    assert encoded(encoding, [1, 2, 3], [4, 4, 5]).shape == (3, 1)


def test_one_row_leaves_no_column():
    encoding = learn_encoding(table_of([1.0], [2.0]), "smooth")
    assert encoding.width == 0
    assert encoded(encoding, [3.0], [4.0]).shape == (1, 0)


def test_rows_that_are_not_named_teach_nothing():
    x = np.random.default_rng(5).normal(size=50)
    rows = np.arange(0, 50, 2)
    spoilt = x.copy()
    spoilt[1::2] = 1e6
    assert learn_encoding(table_of(spoilt), "smooth", rows=rows) == learn_encoding(
        table_of(x[rows]), "smooth"
    )


@pytest.mark.parametrize("cell", [np.nan, np.inf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_cells_that_are_not_finite_are_refused(cell, form):
    with pytest.raises(InputError, match="column 'c0' of party 'shop' must hold finite numbers"):
        learn_encoding(table_of([1.0, 2.0, cell, 0, 0, 0, 0], form=form), "smooth")


def test_other_tables_and_kinds_are_refused():
    encoding = learn_encoding(table_of([1, 2, 3]), "smooth")
    with pytest.raises(InputError, match="1 columns wide"):
        encoding.apply(table_of([1, 2], [1, 2]))
    with pytest.raises(InputError, match="kind must be one of"):
        learn_encoding(table_of([1, 2, 3]), "standard")


def test_few_cells_stay_sparse_and_keep_their_zeros():
    generator = np.random.default_rng(6)
    rows = generator.normal(size=(60, 5)) * (generator.random((60, 5)) < 0.1)
    rows[:, 3] = 0
    encoding = learn_encoding(table_of(*rows.T, form=sparse.csr_array), "smooth")
    assert encoding.parents == (0, 1, 2, 4)
    made = encoding.apply(table_of(*rows.T, form=sparse.csr_array))
    assert made.is_sparse
    expected = rows[:, [0, 1, 2, 4]] * TWO_VALUES / np.abs(rows[:, [0, 1, 2, 4]]).max(axis=0)
    np.testing.assert_allclose(made.block(slice(None)).toarray(), expected, atol=1e-12)
    np.testing.assert_allclose(encoded(encoding, *rows.T), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_a_sparse_table_of_many_cells_is_encoded_as_a_dense_one(kind):
    generator = np.random.default_rng(7)
    columns = generator.normal(size=(3, 60)) * (generator.random((3, 60)) < 0.6)
    full = learn_encoding(table_of(*columns), kind)
    assert learn_encoding(table_of(*columns, form=sparse.csr_array), kind) == full
    found = encoded(full, *columns, form=sparse.csr_array)
    np.testing.assert_array_equal(found, encoded(full, *columns))


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-5, 5).map(float),
    st.just(0.0),
)
columns = st.lists(numbers, min_size=1, max_size=60)


@settings(max_examples=150, deadline=None)
@given(columns, columns, st.sampled_from(ENCODINGS))
def test_any_column_is_encoded_within_bounds_and_in_order(training, asked, kind):
    """Numbers of any kind: never NaN, never far out, and in order but for rounding."""
    encoding = learn_encoding(table_of(training), kind)
    if encoding.width == 0:
        return
    made = encoded(encoding, np.sort(asked))
    assert np.isfinite(made).all()
    assert np.abs(made).max() <= LARGEST_SMOOTH
    assert np.all(np.diff(made[:, 0]) >= -1e-12)


@settings(max_examples=80, deadline=None)
@given(columns, columns, st.sampled_from(ENCODINGS))
def test_a_row_is_encoded_alone_as_among_others_and_after_storing(training, asked, kind):
    encoding = learn_encoding(table_of(training), kind)
    stored = from_json(msgspec.json.encode(encoding), Encoding)
    assert stored == encoding
    together = encoded(encoding, asked)
    alone = np.vstack([encoded(stored, [cell]) for cell in asked])
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_values_beyond_training_go_no_further_than_its_ends_by_much(kind):
    """A row of a million where training knew [0, 1] lies about as far out as its largest."""
    x = np.random.default_rng(8).uniform(size=400)
    encoding = learn_encoding(table_of(x), kind)
    ends, beyond = encoded(encoding, [0, 1]), encoded(encoding, [-1e6, 1e6])
    assert np.all(np.abs(beyond) >= np.abs(ends))
    assert np.abs(beyond).max() < 6


def written(kind):
    x = np.concatenate([np.zeros(60), np.arange(40.0)])
    return msgspec.to_builtins(learn_encoding(table_of(x), kind))


@pytest.mark.parametrize(
    ("kind", "column", "change"),
    [
        ("smooth", 0, {"unit": 0.0}),
        ("smooth", 0, {"factor": float("nan")}),
        ("smooth", 0, {"parent": 1}),
        ("smooth", 0, {"parent": -1}),
        ("smooth", 0, {"colour": 1}),
        ("smooth", 0, {"type": "rough"}),
        ("smooth", 1, {"value": float("inf")}),
        ("quantile", 0, {"knots": (0.0, 1.0)}),
        ("quantile", 0, {"knots": (0.0,), "values": (0.0,)}),
        ("quantile", 0, {"knots": (1.0, 0.0), "values": (0.0, 1.0)}),
        ("quantile", 0, {"knots": (0.0, 1.0), "values": (1.0, 0.0)}),
    ],
)
def test_a_record_that_is_wrong_is_refused(kind, column, change):
    record = written(kind)
    convert(record, Encoding)
    changed = [dict(one) for one in record["encoded"]]
    changed[column].update(change)
    with pytest.raises(msgspec.ValidationError):
        convert({**record, "encoded": changed}, Encoding)
