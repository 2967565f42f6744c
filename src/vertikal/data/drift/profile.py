"""The profile of a party's columns in training: ranges, tenths, categories and missing cells.

It is learned on the training rows, or on `MOST_ROWS` of them evenly spaced, and stored beside the
shard as plain data. It never leaves the party.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.data.cells import TEXT, kind_of, numbers, parsed, texts
from vertikal.data.preparation import Preparation
from vertikal.data.row_choice import RowChoice
from vertikal.data.sources import Source

Array = npt.NDArray[Any]

MOST_ROWS = 100_000
"""Rows of a table that are looked at; with more, evenly spaced ones."""
BINS = 10


class NumberProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="number"):
    """A column of numbers: its range, and how many cells lie between its tenths."""

    name: str
    missing: int
    low: float
    median: float
    high: float
    edges: tuple[float, ...]  # increasing: the tenths, each once
    counts: tuple[int, ...]  # cells up to each edge, and beyond the last

    @property
    def rows(self) -> int:
        """Cells that are there."""
        return sum(self.counts)


class CategoryProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="category"):
    """A column of categories: how many cells have each."""

    name: str
    missing: int
    counts: dict[str, int]

    @property
    def rows(self) -> int:
        """Cells that are there."""
        return sum(self.counts.values())


ColumnProfile: TypeAlias = NumberProfile | CategoryProfile


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns that a model reads at one party, as they were in training."""

    columns: tuple[ColumnProfile, ...]


def learn_profile(source: Source, preparation: Preparation, rows: Array | None = None) -> Profile:
    """Learn the profile of the columns that a preparation reads, on these rows or on all."""
    found: list[ColumnProfile] = []
    kinds = {plan.name: plan.kind for plan in preparation.columns}
    cells = read_cells(source, kinds, rows)
    for name, kind in kinds.items():
        if kind == "category":
            words = Counter(cells[name])
            missing = words.pop(None, 0)
            found.append(CategoryProfile(name, missing, dict(sorted(words.items()))))
        else:
            found.append(_numbers(name, np.asarray(cells[name], np.float64)))
    return Profile(tuple(found))


def _numbers(name: str, cells: Array) -> NumberProfile:
    there = cells[~np.isnan(cells)]
    if not len(there):
        return NumberProfile(name, len(cells), 0.0, 0.0, 0.0, (), (0,))
    tenths = np.quantile(there, np.arange(1, BINS) / BINS, method="inverted_cdf")
    edges = np.unique(tenths)
    return NumberProfile(
        name,
        len(cells) - len(there),
        float(there.min()),
        float(np.median(there)),
        float(there.max()),
        tuple(edges.tolist()),
        count_between(there, edges),
    )


def count_between(cells: Array, edges: Array) -> tuple[int, ...]:
    """Count the cells up to each edge, and beyond the last."""
    places = np.searchsorted(edges, cells, side="left")
    return tuple(np.bincount(places, minlength=len(edges) + 1).tolist())


def read_cells(
    source: Source, kinds: Mapping[str, str], rows: Array | None = None
) -> dict[str, Any]:
    """Read columns of a source: doubles with NaN for numbers, texts or None for categories.

    A column of numbers that has other texts now comes as None.
    """
    names = tuple(kinds)
    found: dict[str, list[Any]] = {name: [] for name in names}
    strange: set[str] = set()
    for batch in _batches(source, names, rows):
        for name, cells in zip(names, batch.columns, strict=True):
            if kinds[name] == "category":
                found[name] += texts(cells).to_pylist()
                continue
            read = parsed(texts(cells)) if kind_of(cells) == TEXT else numbers(cells)
            if read is None:
                strange.add(name)
            else:
                found[name].append(read)
    return {
        name: None
        if name in strange
        else parts
        if kinds[name] == "category"
        else np.concatenate([np.zeros(0), *parts])
        for name, parts in found.items()
    }


def _batches(source: Source, names: tuple[str, ...], rows: Array | None) -> Iterator[Any]:
    """Read these columns of at most `MOST_ROWS` rows, evenly spaced over those asked for."""
    if rows is None:
        rows = np.arange(sum(batch.num_rows for batch in source.blocks(names[:1])))
    chosen = RowChoice(rows[:: max(1, -(-len(rows) // MOST_ROWS))])
    for batch in source.blocks(names):
        yield chosen.take(batch)[0]
