"""Frames with categories, missing cells and mixed types, prepared by each party as services do it.

A service reads a table cell by cell and prepares its columns by `vertikal.data.preparation`. Here a
frame in memory is cut into the parties' columns, and each party prepares its own, so that a model
from a frame and a model between services are the same model. Numbers are prepared as they are: only
words need Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from vertikal.data.cells import NUMBER, kind_of, plain
from vertikal.data.file_formats import arrow
from vertikal.data.preparation import ColumnPlan, Preparation, learn_preparation
from vertikal.data.sources import Source, open_source
from vertikal.data.tables import Table
from vertikal.errors import InputError

Array = npt.NDArray[Any]
Missing = Literal["refuse", "mean", "indicator"]

_NUMBERS = "biufc"
"""Kinds of NumPy's types that are numbers."""
_TIMES = "mM"


@dataclass(frozen=True)
class PreparedTables:
    """The parties' tables of some rows, prepared already."""

    tables: Mapping[str, Table]
    shape: tuple[int, int]  # of the frame that they were made of

    def __len__(self) -> int:
        return self.shape[0]


def is_frame(X: Any) -> bool:
    """Tell if X is a data frame: of pandas, or one that speaks Arrow, such as one of Polars."""
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "__arrow_c_stream__"))


def has_words(X: Any) -> bool:
    """Tell if X is a frame with a column that is not of numbers."""
    if not is_frame(X):
        return False
    if hasattr(X, "iloc"):
        return any(_kind(X.iloc[:, number]) not in _NUMBERS for number in range(X.shape[1]))
    # Arrow need not be installed for numbers, so that the types are asked first.
    kinds = getattr(X, "dtypes", None)
    if kinds is not None and all(hasattr(kind, "is_numeric") for kind in kinds):
        return not all(kind.is_numeric() or str(kind) == "Boolean" for kind in kinds)
    return any(kind_of(_arrow_cells(X, number)) != NUMBER for number in range(X.shape[1]))


def learn_tables(
    X: Any, assigned: Mapping[str, list[int]], names: Sequence[str] | None, missing: Missing
) -> tuple[dict[str, Preparation], PreparedTables]:
    """Learn each party's preparation on these rows, and prepare them.

    X is a frame, or an array of numbers. Columns that are of no use are left out; the preparations'
    remarks name them.
    """
    preparations, tables = {}, {}
    for party, numbers in assigned.items():
        if isinstance(X, np.ndarray):
            titles = _titles(numbers, names)
            preparations[party] = _learn_numbers(party, titles, X[:, numbers], missing)
            tables[party] = _filled(preparations[party], titles, X[:, numbers])
            continue
        source, categories = _source(party, X, numbers, names)
        preparations[party], prepared = learn_preparation(
            source, source.columns, missing=missing, categories=categories, unusable="drop"
        )
        tables[party] = prepared.table
    return preparations, PreparedTables(tables, tuple(X.shape))


def replay_tables(
    X: Any,
    assigned: Mapping[str, list[int]],
    names: Sequence[str] | None,
    preparations: Mapping[str, Preparation],
) -> PreparedTables:
    """Prepare rows as the training rows were."""
    tables = {}
    for party, preparation in preparations.items():
        if isinstance(X, np.ndarray):
            numbers = assigned[party]
            tables[party] = _filled(preparation, _titles(numbers, names), X[:, numbers])
            continue
        source, _ = _source(party, X, assigned[party], names)
        tables[party] = preparation.apply(source).table
    return PreparedTables(tables, tuple(X.shape))


def are_numbers(preparations: Mapping[str, Preparation]) -> bool:
    """Tell if the preparations read columns of numbers only."""
    plans = (plan for one in preparations.values() for plan in one.columns)
    return all(plan.kind == "number" for plan in plans)


def _titles(numbers: Sequence[int], names: Sequence[str] | None) -> list[str]:
    return [str(number) if names is None else names[number] for number in numbers]


def _learn_numbers(
    party: str, titles: Sequence[str], block: Array, missing: Missing
) -> Preparation:
    """Learn what `learn_preparation` learns of columns of numbers; NaN is a missing cell."""
    plans, remarks = [], []
    for title, cells in zip(titles, block.T, strict=True):
        there = cells[~np.isnan(cells)]
        if np.isinf(there).any():
            raise InputError(f"column {title!r} of party {party!r} must hold finite numbers")
        if len(there) == 0:
            remarks.append(f"column {title!r} was dropped: no cell is there")
        elif there.min() == there.max():
            remarks.append(f"column {title!r} was dropped: it is the same number in each row")
        else:
            indicator = missing == "indicator" and len(there) < len(cells)
            plans.append(
                ColumnPlan(title, "number", float(there.mean(dtype=np.float64)), (), indicator)
            )
    return Preparation(party, missing, tuple(plans), None, tuple(remarks))


def _filled(preparation: Preparation, titles: Sequence[str], block: Array) -> Table:
    """Do what `Preparation.apply` does with columns of numbers."""
    made = [np.empty((len(block), 0))]
    for plan in preparation.columns:
        cells = block[:, [titles.index(plan.name)]]
        absent = np.isnan(cells)
        if np.isinf(cells).any():
            raise InputError(
                f"column {plan.name!r} of party {preparation.party!r} must hold finite numbers"
            )
        made.append(np.where(absent, plan.mean, cells))
        if plan.indicator:
            made.append(absent.astype(np.float64))
    return Table(preparation.party, preparation.titles, np.hstack(made))


def _source(
    party: str, X: Any, numbers: Sequence[int], names: Sequence[str] | None
) -> tuple[Source, tuple[str, ...]]:
    """Open a party's columns, and name those whose type says that they only name things."""
    titles = _titles(numbers, names)
    cells, categories = [], []
    for title, number in zip(titles, numbers, strict=True):
        column, names_things = _column(party, title, X, number)
        cells.append(column)
        if names_things:
            categories.append(title)
    return open_source(party, arrow().table(cells, names=titles)), tuple(categories)


def _column(party: str, title: str, X: Any, number: int) -> tuple[Any, bool]:
    """One column as Arrow's numbers or texts; True if its type says that it only names things."""
    pa = arrow()
    if not hasattr(X, "iloc"):
        cells = _arrow_cells(X, number)
        return plain(cells), pa.types.is_dictionary(cells.type)
    column = X.iloc[:, number]
    if _kind(column) in _NUMBERS:
        return pa.array(column.to_numpy(np.float64, na_value=np.nan), from_pandas=True), False
    if _kind(column) in _TIMES:
        return pa.array(column, from_pandas=True), False
    if column.dtype.name == "category":
        words = [_word(party, title, one) for one in column.cat.categories]
        codes = column.cat.codes.to_numpy().astype(np.int32)
        places = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(places, pa.array(words, pa.string())), True
    cells = [
        None if absent else _word(party, title, cell)
        for cell, absent in zip(column, column.isna(), strict=True)
    ]
    return pa.array(cells, pa.string()), False


def _arrow_cells(X: Any, number: int) -> Any:
    return arrow().table(X).column(number).combine_chunks()


def _kind(column: Any) -> str:
    return str(getattr(column.dtype, "kind", "O"))


def _word(party: str, title: str, cell: Any) -> str:
    if isinstance(cell, str | int | float | np.generic):
        return str(cell)
    raise InputError(
        f"columns: column {title!r} of party {party!r} must hold numbers or text, got "
        f"{type(cell).__name__}"
    )
