"""Rows of a block of cells that a filter keeps, by SQL's logic of three values.

A comparison with a missing cell is neither true nor false, and so is its opposite; a row is kept
where the whole condition is true. A condition is carried as two masks, of the rows where it is true
and of those where it is false.

Cells of a CSV file are text: compared with a number they are read as numbers, compared with a text
they stay text, so that dates as 2025-01-31 are in order. Errors name columns, and never a cell.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vertikal.data.cells import NOTHING, NUMBER, TEXT, kind_of, parsed, plain, texts
from vertikal.data.file_formats import arrow
from vertikal.data.row_filter.grammar import (
    Alternative,
    Comparison,
    Condition,
    Conjunction,
    Missing,
    Negation,
    OneOf,
    Value,
)
from vertikal.errors import InputError

Mask = npt.NDArray[np.bool_]

_COMPARE = {"=": "equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


class _Truth(NamedTuple):
    """Rows where a condition is true, and rows where it is false; of the rest neither is known."""

    true: Mask
    false: Mask


def kept_rows(party: str, condition: Condition, batch: Any) -> Mask:
    """Mark the rows of a record batch that a filter keeps: (rows,)."""
    return _truth(party, condition, batch).true


def _truth(party: str, condition: Condition, batch: Any) -> _Truth:
    match condition:
        case Negation(of):
            found = _truth(party, of, batch)
            return _Truth(found.false, found.true)
        case Conjunction(parts):
            return _joined(party, parts, batch, operator.and_, operator.or_)
        case Alternative(parts):
            return _joined(party, parts, batch, operator.or_, operator.and_)
        case Missing(column):
            absent = _is_missing(batch.column(column))
            return _Truth(absent, ~absent)
        case OneOf(column, values):
            parts = tuple(Comparison(column, "=", value) for value in values)
            return _joined(party, parts, batch, operator.or_, operator.and_)
    return _compared(party, condition, batch.column(condition.column))


def _joined(
    party: str,
    parts: tuple[Condition, ...],
    batch: Any,
    true: Callable[[Any, Any], Any],
    false: Callable[[Any, Any], Any],
) -> _Truth:
    first, *others = (_truth(party, part, batch) for part in parts)
    for other in others:
        first = _Truth(true(first.true, other.true), false(first.false, other.false))
    return first


def _is_missing(cells: Any) -> Mask:
    kind = kind_of(cells)
    if kind == TEXT:
        return np.asarray(texts(cells).is_null())
    return np.asarray(plain(cells).is_null(nan_is_null=True))


def _compared(party: str, test: Comparison, cells: Any) -> _Truth:
    """Compare the cells of one column with one value."""
    from pyarrow import compute

    kind = kind_of(cells)
    if kind == NOTHING:
        nowhere = np.zeros(len(cells), bool)
        return _Truth(nowhere, nowhere)
    if kind == TEXT:
        left, right = _of_text(party, test, cells)
    elif kind == NUMBER:
        left, right = _of_numbers(party, test, cells)
    elif arrow().types.is_temporal(plain(cells).type):
        left, right = _of_dates(party, test, plain(cells))
    else:
        raise InputError(
            f"rows of {party}: column {test.column!r} must be of numbers, text or dates, got {kind}"
        )
    known = ~np.asarray(left.is_null(nan_is_null=True))
    told = getattr(compute, _COMPARE[test.sign])(left, right)
    true = np.asarray(compute.fill_null(told, fill_value=False)) & known
    return _Truth(true, known & ~true)


def _of_text(party: str, test: Comparison, cells: Any) -> tuple[Any, Any]:
    words, value = texts(cells), test.value
    if isinstance(value, str):
        return words, arrow().scalar(value.strip())
    if isinstance(value, bool):
        from pyarrow import compute

        words = compute.utf8_lower(words)
        for word, digit in (("true", "1"), ("false", "0")):
            words = compute.if_else(compute.equal(words, word), digit, words)
    found = parsed(words)
    if found is None:
        raise _unlike(party, test, "true and false" if isinstance(value, bool) else "numbers")
    return arrow().array(found), float(value)


def _of_numbers(party: str, test: Comparison, cells: Any) -> tuple[Any, Any]:
    pa, found, value = arrow(), plain(cells), test.value
    if isinstance(value, str):
        raise InputError(
            f"rows of {party}: column {test.column!r} is of numbers, and compared with the text "
            f"{value[:40]!r}; write a number without quotes"
        )
    if pa.types.is_boolean(found.type):
        found = found.cast(pa.int8())
    elif pa.types.is_decimal(found.type):
        found = found.cast(pa.float64())
    # Whole numbers are compared as such: as doubles two long ids may be equal that are not.
    exact = pa.types.is_integer(found.type) and isinstance(value, int) and abs(value) < 1 << 63
    return (found, int(value)) if exact else (found.cast(pa.float64(), safe=False), float(value))


def _of_dates(party: str, test: Comparison, cells: Any) -> tuple[Any, Any]:
    """Compare dates with a text such as '2025-01-31'; times with a zone are compared in UTC."""
    pa, kind, value = arrow(), cells.type, test.value
    try:
        if not isinstance(value, str):
            raise pa.ArrowInvalid("no text")
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            naive = pa.scalar(value).cast(pa.timestamp(kind.unit))
            return cells.cast(pa.timestamp(kind.unit, "UTC")).cast(pa.timestamp(kind.unit)), naive
        return cells, pa.scalar(value).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"rows of {party}: column {test.column!r} is of dates or times ({kind}); compare it "
            "with a text such as '2025-01-31'"
        ) from None


def _unlike(party: str, test: Comparison, wanted: str) -> InputError:
    value: Value = test.value
    return InputError(
        f"rows of {party}: column {test.column!r} must be of {wanted} to be compared with {value}, "
        "and has other cells; put a text in single quotes"
    )
