"""A party's column of labels as the targets that programs learn from, and weights of its rows.

Classes go by their names, which are the cells as text: 1 and 1.0 are both called ``1``. Of two
classes the positive one is +1. More than two are learned one against the rest, with one target for
each, in the order in which they are listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.data.cells import TEXT, kind_of, numbers, parsed, texts
from vertikal.data.file_formats import arrow
from vertikal.data.sources import Source
from vertikal.errors import InputError

Array = npt.NDArray[Any]

BALANCED = "balanced"
MOST_NAMED = 12
"""Classes that an error names."""


@dataclass(frozen=True)
class LabelPlan:
    """The column of labels, the way it is read, and the weights of rows and classes."""

    column: str
    regression: bool = False
    classes: tuple[str, ...] = ()
    """Names of all classes, in order; if there are none, the column must have two."""
    positive: str | None = None
    """The class of two that is +1; by default the last that is listed, else the larger number or
    the later in the alphabet."""
    weight: str | None = None
    """Column with the weight of each row."""
    class_weight: Mapping[str, float] | str | None = None
    """Factors by class, 1 for one that is not named, or `BALANCED`: all classes weigh the same."""
    partial: bool = False
    """True if rows may have no label here: other label parties label them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (self.column, *([self.weight] if self.weight else []))


@dataclass(frozen=True)
class LabelledRows:
    """Targets and weights of rows, and the classes that the targets stand for."""

    targets: Array  # (rows, outputs)
    weights: Array  # (rows,)
    classes: tuple[str, ...] = ()
    """Names of the classes; of two the second is the positive one. None for a regression."""
    known: Array | None = None  # (rows,) bool, the rows that have a label; None: all


def class_name(value: str | float) -> str:
    """Write a class as it is called: a whole number without its fraction.

    >>> class_name(1.0), class_name(0.5), class_name("accept")
    ('1', '0.5', 'accept')
    """
    return value if isinstance(value, str) else repr(float(value)).removesuffix(".0")


def read_labels(source: Source, plan: LabelPlan, rows: Array | None = None) -> LabelledRows:
    """Read targets and weights of all rows, or of those in ``rows``, in that order.

    Targets are the numbers themselves for a regression, else −1 and +1. Rows without a label, where
    the plan allows them, have target and weight 0.
    """
    if not plan.partial:
        return _labelled(source, plan, rows)
    known = ~_missing(source, plan.column, rows)
    if not known.any():
        raise InputError(f"label of {source.party}: column {plan.column!r} labels no row")
    numbers = np.arange(len(known)) if rows is None else rows
    found = _labelled(source, plan, numbers[known])
    targets = np.zeros((len(known), found.targets.shape[1]))
    weights = np.zeros(len(known))
    targets[known], weights[known] = found.targets, found.weights
    return LabelledRows(targets, weights, found.classes, known)


def _labelled(source: Source, plan: LabelPlan, rows: Array | None) -> LabelledRows:
    """Read targets and weights of rows that all have a label."""
    found = _read(source, plan.column, "label", rows)
    if plan.regression and found.dtype.kind == "U":
        raise InputError.of(f"label of {source.party}", "numbers, for a regression", "text")
    if found.dtype.kind != "U" and not np.isfinite(found).all():
        raise InputError.of(f"label of {source.party}", "finite numbers", "infinity")
    weights = _weights(source, plan.weight, rows, len(found))
    if plan.regression:
        return LabelledRows(found[:, None], weights)
    classes, places = _classes(source.party, plan, found)
    if plan.class_weight is not None:
        weights = weights * _factors(source.party, plan.class_weight, classes, places, weights)
    wanted = np.arange(len(classes)) if len(classes) > 2 else np.array([1])
    return LabelledRows(np.where(places[:, None] == wanted, 1.0, -1.0), weights, classes)


def count_classes(source: Source, column: str) -> int:
    """Count the different values of a column of labels, empty cells apart."""
    rows = np.flatnonzero(~_missing(source, column, None))
    return len(np.unique(_read(source, column, "label", rows)))


def count_unlabelled(source: Source, column: str) -> int:
    """Count the rows whose cell in a column of labels is empty."""
    return int(_missing(source, column, None).sum())


def _classes(party: str, plan: LabelPlan, found: Array) -> tuple[tuple[str, ...], Array]:
    """Name the classes in their order, and find the place of each row's class in it."""
    there = np.unique(found)
    if not plan.classes and len(there) != 2:
        raise _not_two(party, plan.column, there)
    names = plan.classes or tuple(class_name(value.item()) for value in there)
    values = [_as_cell(name, found) for name in names]
    if plan.positive is not None:
        place = next(
            (k for k, one in enumerate(values) if one == _as_cell(plan.positive, found)), None
        )
        if place is None or len(names) != 2:
            raise InputError.of(
                f"positive of {party}", f"one of two classes {list(names)}", plan.positive
            )
        order = [1 - place, place]
        names, values = tuple(names[k] for k in order), [values[k] for k in order]
    others = [class_name(one.item()) for one in there if one.item() not in values]
    if others:
        raise InputError(
            f"label of {party}: column {plan.column!r} has classes that the job does not list: "
            f"{_listed(others)}"
        )
    absent = [name for name, one in zip(names, values, strict=True) if one not in there.tolist()]
    if absent and not plan.partial:
        raise InputError(f"label of {party}: no row is of class {_listed(absent)}")
    places = np.zeros(len(found), np.int64)
    for place, value in enumerate(values):
        places[found == value] = place
    return tuple(names), places


def _as_cell(name: str, found: Array) -> Any:
    """Read the name of a class as the cells of a column are; None if none of them can be it."""
    if found.dtype.kind == "U":
        return name
    try:
        return float(name)
    except ValueError:
        return None


def _not_two(party: str, column: str, there: Array) -> InputError:
    names = [class_name(one.item()) for one in there]
    said = (
        f"label of {party}: column {column!r} must have two classes, or the job list them all, got "
    )
    if len(names) == 1:
        return InputError(f"{said}one: {names[0]!r}")
    if len(names) > MOST_NAMED:
        return InputError(f"{said}{len(names)}; for a regression set regression = true")
    listed = ", ".join(f'"{name}"' for name in names)
    return InputError(f"{said}{len(names)}: classes = [{listed}]")


def _factors(
    party: str,
    given: Mapping[str, float] | str,
    classes: Sequence[str],
    places: Array,
    weights: Array,
) -> Array:
    """Return the factor (rows,) of each row's class."""
    if isinstance(given, str):
        totals = np.bincount(places, weights, len(classes))
        if not totals.all():
            none = _listed([name for name, one in zip(classes, totals, strict=True) if not one])
            raise InputError(f"class_weight of {party}: the rows of class {none} have no weight")
        factors = totals.sum() / (len(classes) * totals)
    else:
        strange = [name for name in given if name not in classes]
        if strange:
            raise InputError.of(
                f"class_weight of {party}", f"of the classes {list(classes)}", strange[0]
            )
        factors = np.array([given.get(name, 1.0) for name in classes])
        if not factors.any():
            raise InputError.of(f"class_weight of {party}", "not zero for all classes", dict(given))
    return np.asarray(factors[places])


def _weights(source: Source, column: str | None, rows: Array | None, count: int) -> Array:
    if column is None:
        return np.ones(count)
    found = _read(source, column, "weight", rows)
    if found.dtype.kind == "U" or not np.isfinite(found).all() or (found < 0).any():
        raise InputError(
            f"weight of {source.party}: column {column!r} must have finite numbers, none negative"
        )
    if not found.any():
        raise InputError(f"weight of {source.party}: column {column!r} must not be zero everywhere")
    return found


def _missing(source: Source, column: str, rows: Array | None) -> Array:
    """Find the rows whose cell is empty, (rows,) bool."""
    blocks = _blocks(source, column, "label")
    parts = [
        np.asarray(texts(cells).is_null()) if kind_of(cells) == TEXT else np.isnan(numbers(cells))
        for cells in blocks
    ]
    found = np.concatenate([np.zeros(0, bool), *parts])
    return found if rows is None else found[rows]


def _blocks(source: Source, column: str, role: str) -> list[Any]:
    """The column's cells, in blocks."""
    if column not in source.columns:
        raise InputError.of(
            f"{role} of {source.party}", f"one of the columns {list(source.columns)}", column
        )
    return [batch.column(0) for batch in source.blocks([column])]


def _read(source: Source, column: str, role: str, rows: Array | None) -> Array:
    """The cells (rows,) as doubles, or as text if one of them is no number; none is missing."""
    pa = arrow()
    blocks = _blocks(source, column, role)
    words = [texts(cells) for cells in blocks if kind_of(cells) == TEXT]
    if words:
        cells = pa.chunked_array(words).combine_chunks()
        chosen = cells if rows is None else cells.take(pa.array(rows))
        missing, found = chosen.null_count, parsed(chosen)
    else:
        found = np.concatenate([np.zeros(0), *map(numbers, blocks)])
        found = found if rows is None else found[rows]
        chosen, missing = found, int(np.isnan(found).sum())
    if missing:
        raise InputError(
            f"{role} of {source.party}: {missing} of {len(chosen)} are missing; leave such rows out"
        )
    return np.array(chosen.to_pylist(), dtype=str) if found is None else found


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"
