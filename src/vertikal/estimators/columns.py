"""Cutting one table of a simulation into the parties' own tables."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.mesh.wire import MAX_NAME

Array = npt.NDArray[Any]

_SHOWN = 8
"""Columns of the input that a message names."""


def assign_columns(
    parties: object, n_features: int, names: Sequence[str] | None
) -> dict[str, list[int]]:
    """Column numbers by party, from a number of parties or from a mapping of names to columns.

    A number cuts the columns into runs of nearly equal length. A mapping lists columns by number,
    or by name where the input has names, also by the beginning of names (``"bank_*"``); columns
    that no party lists stay unused. A function says of each column's name whose it is.
    """
    if callable(parties):
        parties = _from_function(parties, names)
    if isinstance(parties, Mapping):
        return _from_mapping(parties, n_features, names)
    if isinstance(parties, bool | np.bool_) or not isinstance(parties, int | np.integer):
        raise InputError.of(
            "parties",
            "a whole number from 2 on, or a mapping of names to columns, or a function of columns",
            parties,
        )
    if parties < 2:
        raise InputError.of("parties", "at least 2: one party alone needs no federation", parties)
    if parties > n_features:
        raise InputError(
            f"parties must be at most the number of columns, got {parties} parties for "
            f"{n_features} feature(s)"
        )
    runs = np.array_split(np.arange(n_features), int(parties))
    return {f"party{i}": [int(c) for c in run] for i, run in enumerate(runs, 1)}


def _from_function(
    party_of: Callable[[str], Any], names: Sequence[str] | None
) -> dict[Any, list[str]]:
    """Ask for the party of each column; None leaves a column unused."""
    if names is None:
        raise InputError("parties must not be a function, since the input has no column names")
    found: dict[Any, list[str]] = {}
    for name in names:
        party = party_of(name)
        if party is not None:
            found.setdefault(party, []).append(name)
    return found


def _from_mapping(
    parties: Mapping[Any, Any], n_features: int, names: Sequence[str] | None
) -> dict[str, list[int]]:
    if len(parties) < 2:
        raise InputError.of(
            "parties", "a mapping of at least two parties to their columns", list(parties)
        )
    assigned: dict[str, list[int]] = {}
    owner: dict[int, str] = {}
    for party, columns in parties.items():
        check_name("parties", party)
        numbers = _numbers(party, columns, n_features, names)
        if not numbers:
            raise InputError.of("parties", f"given at least one column each; {party!r}", "none")
        for number in numbers:
            if number in owner:
                shown = names[number] if names is not None else number
                raise InputError(
                    f"parties must have different columns, got column {shown!r} at both "
                    f"{owner[number]!r} and {party!r}"
                )
            owner[number] = party
        assigned[party] = numbers
    return assigned


def with_dealer(tables: dict[str, Table], dealer: str | None) -> dict[str, Table]:
    """Add a dealer that is none of the parties, which takes part without columns."""
    if dealer is None or dealer in tables:
        return tables
    check_name("dealer", dealer)
    rows = next(iter(tables.values())).rows
    return {**tables, dealer: Table(dealer, (), np.empty((rows, 0)))}


def check_name(parameter: str, name: object) -> None:
    """Refuse what cannot be a party's name."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise InputError.of(parameter, f"named by texts of 1 to {MAX_NAME} characters", name)


def _numbers(party: str, columns: Any, n_features: int, names: Sequence[str] | None) -> list[int]:
    if isinstance(columns, slice):
        return list(range(n_features))[columns]
    if isinstance(columns, str | int | np.integer):
        columns = [columns]
    if not isinstance(columns, Iterable):
        raise InputError.of(f"parties[{party!r}]", "a list of columns", columns)
    listed = [c.item() if isinstance(c, np.generic) else c for c in columns]
    if listed and all(isinstance(c, bool) for c in listed):
        if len(listed) != n_features:
            raise InputError.of(
                f"parties[{party!r}]", f"a mask of {n_features} entries", len(listed)
            )
        return [i for i, used in enumerate(listed) if used]
    numbers = []
    for column in listed:
        numbers += _beginning(column, names) or [_number(party, column, n_features, names)]
    return numbers


def _beginning(column: Any, names: Sequence[str] | None) -> list[int]:
    """The columns that begin as a text with a star at its end says, unless one is named so."""
    if names is None or not isinstance(column, str) or not column.endswith("*") or column in names:
        return []
    return [number for number, name in enumerate(names) if name.startswith(column[:-1])]


def _number(party: str, column: Any, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise InputError.of(
                f"parties[{party!r}]", "column numbers, since the input has no column names", column
            )
        if column not in names:
            raise InputError(
                f"column {column!r} of parties[{party!r}] is not in the input"
                f"{_nearest(column, names)}"
            )
        return list(names).index(column)
    if (
        isinstance(column, bool)
        or not isinstance(column, int)
        or not -n_features <= column < n_features
    ):
        raise InputError.of(f"parties[{party!r}]", f"columns from 0 to {n_features - 1}", column)
    return column % n_features


def _nearest(column: str, names: Sequence[str]) -> str:
    """Name the columns that somebody may have meant, or the first ones."""
    near = difflib.get_close_matches(column.rstrip("*"), names, n=3)
    if near:
        return f"; it has {', '.join(map(repr, near))}"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f", whose columns are {', '.join(map(repr, names[:_SHOWN]))}{more}"


def choose_label_parties(label_parties: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The label parties by name: the first party, the first so many, or those that are named."""
    if label_parties is None:
        return names[:1]
    if isinstance(label_parties, str):
        label_parties = (label_parties,)
    if isinstance(label_parties, int | np.integer) and not isinstance(label_parties, bool):
        if not 1 <= label_parties <= len(names):
            raise InputError.of("label_parties", f"from 1 to {len(names)}", label_parties)
        return names[: int(label_parties)]
    if not isinstance(label_parties, Sequence) or not label_parties:
        raise InputError.of("label_parties", f"a number, or some of {list(names)}", label_parties)
    for name in label_parties:
        if name not in names:
            raise InputError.of("label_parties", f"some of the parties {list(names)}", name)
    if len(set(label_parties)) != len(label_parties):
        raise InputError.of("label_parties", "different parties", list(label_parties))
    return tuple(label_parties)


def cut(
    values: Any, assigned: Mapping[str, list[int]], names: Sequence[str] | None
) -> dict[str, Table]:
    """Each party's own table: its columns of ``values`` and no others."""
    tables = {}
    for party, numbers in assigned.items():
        titles = tuple(names[c] if names is not None else str(c) for c in numbers)
        first = numbers[0] if numbers else 0
        run = slice(first, first + len(numbers))
        if not sparse.issparse(values) and numbers == list(range(run.start, run.stop)):
            tables[party] = Table(party, titles, values[:, run])
        else:
            tables[party] = Table(party, titles, values[:, numbers])
    return tables


def refuse_text(
    values: Any, assigned: Mapping[str, list[int]], names: Sequence[str] | None
) -> None:
    """Name the first cell that is not a number, its column and its party."""
    for party, numbers in assigned.items():
        for number in numbers:
            for cell in values[:, number]:
                try:
                    float(cell)
                except (TypeError, ValueError):
                    title = repr(names[number]) if names is not None else str(number)
                    raise InputError(
                        f"columns: column {title} of party {party!r} must hold numbers, got "
                        f"{cell!r}; encode categories first, for instance with "
                        "sklearn.preprocessing.OneHotEncoder, or give a data frame, of which each "
                        "party encodes its own"
                    ) from None
