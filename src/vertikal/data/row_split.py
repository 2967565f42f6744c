"""A part of the rows held out of training: at random, by whole groups, or the last by time.

The party with the labels chooses it by its own columns. Rows of one group, or of one time, stay
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.data.cells import NOTHING, NUMBER, TEXT, kind_of, numbers, parsed, plain, texts
from vertikal.data.file_formats import arrow
from vertikal.data.sources import Source
from vertikal.errors import InputError

Array = npt.NDArray[Any]


def hold_out(
    source: Source,
    rows: Array,
    share: float,
    generator: np.random.Generator,
    *,
    group: str | None = None,
    time: str | None = None,
) -> Array:
    """Hold out about this share of ``rows`` of a table, by one of two columns or at random.

    Returns (rows,) bool.
    """
    if time is not None:
        return hold_out_last(read_times(source, time, rows), share)
    if group is not None:
        return hold_out_groups(read_groups(source, group, rows), share, generator)
    return hold_out_rows(len(rows), share, generator)


def hold_out_rows(rows: int, share: float, generator: np.random.Generator) -> Array:
    """Hold out this share of ``rows`` rows at random: (rows,) bool."""
    return hold_out_groups(np.arange(rows), share, generator)


def hold_out_groups(groups: Array, share: float, generator: np.random.Generator) -> Array:
    """Hold out whole groups, drawn at random, with about this share of the rows.

    ``groups`` (rows,) numbers the group of each row.
    """
    names, places, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = generator.permutation(len(names))
    held = np.zeros(len(names), bool)
    held[order[: _closest(sizes[order].cumsum(), share * len(groups))]] = True
    return np.asarray(held[places.reshape(-1)])


def cut_rows(kinds: Array, parts: int, generator: np.random.Generator) -> Array:
    """Cut rows into parts at random, each kind of them spread evenly: (rows,) from 0 on.

    ``kinds`` (rows,) numbers the kind of each row, such as its class.
    """
    order = np.lexsort((generator.random(len(kinds)), kinds))
    found = np.empty(len(kinds), np.int64)
    found[order] = (np.arange(len(kinds)) + generator.integers(parts)) % parts
    return _every_part(found, parts)


def cut_groups(groups: Array, parts: int, generator: np.random.Generator) -> Array:
    """Cut rows into parts of about the same size, whole groups each: (rows,) from 0 on."""
    names, places, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = generator.permutation(len(names))
    order = order[np.argsort(-sizes[order], kind="stable")]
    loads, found = np.zeros(parts), np.zeros(len(names), np.int64)
    for group in order:
        found[group] = part = int(loads.argmin())
        loads[part] += sizes[group]
    return _every_part(found[places.reshape(-1)], parts)


def cut_times(times: Array, folds: int) -> Array:
    """Cut rows by time into ``folds`` stretches after a first one, all of about the same size.

    Returns (rows,), 0 for the first stretch; rows of one time stay together.

    >>> cut_times(np.array([5, 1, 1, 3, 4, 9]), 2)
    array([2, 0, 0, 1, 1, 2])
    """
    _, places, sizes = np.unique(times, return_inverse=True, return_counts=True)
    middles = sizes.cumsum() - sizes / 2
    found = (middles * (folds + 1) / len(times)).astype(np.int64)
    there = len(np.unique(found))
    if there <= folds:
        raise InputError.of("folds", f"at most {there - 1}, by the times that there are", folds)
    return np.asarray(found[places.reshape(-1)])


def _every_part(found: Array, parts: int) -> Array:
    """Refuse a cut that leaves a part empty."""
    there = len(np.unique(found))
    if there < parts:
        raise InputError.of("folds", f"at most {there}, the rows or groups that there are", parts)
    return found


def hold_out_last(times: Array, share: float) -> Array:
    """Hold out the last rows by ``times`` (rows,), with about this share of the rows."""
    known, sizes = np.unique(times, return_counts=True)
    last = _closest(sizes[::-1].cumsum(), share * len(times))
    return np.asarray(times >= known[len(known) - last])


def _closest(totals: Array, wanted: float) -> int:
    """Count the parts, one at least and never all, whose total is closest to what is wanted."""
    if len(totals) < 2:
        raise InputError.of("rows to hold out", "of two groups or times at least", len(totals))
    return int(np.abs(totals[:-1] - wanted).argmin()) + 1


def read_groups(source: Source, column: str, rows: Array) -> Array:
    """Number the groups of these rows (rows,) by the cells of a column."""
    return _read(source, column, rows, lambda words: np.array(words, dtype=str))


def read_times(source: Source, column: str, rows: Array) -> Array:
    """Number the times of these rows (rows,) in their order: numbers, dates, or text by ISO 8601.

    >>> _moments(["2024-01-31", "2023-12-01"])
    array([1, 0])
    """
    return _read(source, column, rows, _moments)


def _moments(words: Sequence[str]) -> Array:
    try:
        found = [datetime.fromisoformat(word) for word in words]
        order = {one: place for place, one in enumerate(sorted(set(found)))}
    except (ValueError, TypeError):
        raise InputError.of(
            "time", "numbers, dates, or text such as 2024-01-31, all with or without a zone", "text"
        ) from None
    return np.array([order[one] for one in found])


def _read(
    source: Source, column: str, rows: Array, from_text: Callable[[Sequence[str]], Array]
) -> Array:
    """Number the cells of a column by their value, none of them missing."""
    if column not in source.columns:
        raise InputError.of(
            f"evaluation of {source.party}", f"by one of the columns {list(source.columns)}", column
        )
    pa = arrow()
    blocks = [batch.column(0) for batch in source.blocks([column])]
    kinds = {kind_of(cells) for cells in blocks} - {NOTHING}
    if kinds <= {NUMBER}:
        found = np.concatenate([np.zeros(0), *map(numbers, blocks)])[rows]
        missing = int(np.isnan(found).sum())
    elif kinds == {TEXT}:
        words = pa.chunked_array([texts(one) for one in blocks]).combine_chunks().take(rows)
        missing, as_numbers = words.null_count, parsed(words)
        if missing:
            found = np.zeros(0)
        else:
            found = from_text(words.to_pylist()) if as_numbers is None else as_numbers
    else:
        try:
            moments = [plain(one).cast(pa.timestamp("us")) for one in blocks]
        except pa.ArrowInvalid:
            raise InputError.of(
                f"column {column!r} of {source.party}", "of numbers, text or dates", sorted(kinds)
            ) from None
        chosen = pa.chunked_array(moments).combine_chunks().take(rows)
        missing = chosen.null_count
        found = np.asarray(chosen.to_numpy(zero_copy_only=False))
    if missing:
        raise InputError(
            f"column {column!r} of {source.party}: {missing} of {len(rows)} cells are missing, and "
            "rows cannot be held out by it"
        )
    return np.unique(found, return_inverse=True)[1].reshape(-1)
