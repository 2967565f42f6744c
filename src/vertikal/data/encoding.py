"""A party's own encoding of its columns for kernels, learned on training rows, kept in its shard.

A kernel measures distances between rows, so one column of large or lopsided numbers drowns the
others. An encoding bends each column until a typical difference in it is about one:

- **smooth**: z/√(1 + (z/3)²), where z counts from the median in quartile widths, then brought to
  unit deviation. It is linear where most rows are and never leaves [−3, 3] before that.
- **quantile**: the place of a value among the training values, each counted by the root of its
  frequency, so that a value that many rows share does not squeeze the others together.
- **normal**: the normal score of that place.

Whatever the kind, a column of **two values** becomes −mean and 1 − mean, times `TWO_VALUES`: so do
the 0 and 1 of categories. A column in which one value holds half of the rows or more (a **spike**)
keeps its encoded numbers, and its frequent values get a column of two values each. **Constant**
columns tell a kernel nothing; they are left out, with a remark.

A **sparse** table with few cells stays sparse: its columns are divided by their largest magnitude,
times `TWO_VALUES`, and no cell that is zero becomes anything else.

What a row becomes depends on that row and on the training rows alone. Factors that are learned
later, such as relevance, are a `Scaling` of the columns that an encoding makes.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ndtri

from vertikal.data.column_checks import check_bounds, column_bounds
from vertikal.data.tables import Table
from vertikal.errors import InputError

Array = npt.NDArray[Any]

EncodingKind = Literal["smooth", "quantile", "normal"]
ENCODINGS: tuple[EncodingKind, ...] = get_args(EncodingKind)

TWO_VALUES = 0.7
"""Distance between the two values of a column that has no others."""
SPIKE = 0.5
"""Share of the rows that one value must hold for the frequent values to get columns."""
LEAST_FREQUENT = 10
"""Rows in which a value must occur to be frequent."""
MOST_FREQUENT = 64
"""Frequent values of one column that get columns."""
MOST_KNOTS = 1000
"""Knots of one column's places; fewer in wide tables, so that an encoding stays small."""
KNOTS_OF_TABLE = 250_000
_FEWEST_KNOTS = 32
STAYS_SPARSE = 0.25
"""Share of cells up to which a sparse table stays sparse; above it, memory is no reason to."""
_QUARTILE_UNITS = 1.35
"""Quartile width of a normal column, in deviations."""
_SATURATION = 3.0
_FARTHEST = 1e9
"""Bound on z, far beyond saturation, so that no number overflows."""
_OUTERMOST = 2e-3
"""Share of the places at either end that get no normal score of their own."""
_POSITIVE = (np.finfo(np.float64).tiny, np.finfo(np.float64).max)
_LEAST_DEVIATION = 0.02
"""Deviation of a bent column below which it is not enlarged further: nearly all of its rows lie at
one place, and the few others must not be all that distances see."""
_HEIGHT = 8192


class Smooth(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="smooth"):
    """x ↦ (s(z) − centre)·factor with z = (x − median)/unit and s(z) = z/√(1 + (z/3)²)."""

    parent: int
    median: float
    unit: float
    centre: float
    factor: float

    def __post_init__(self) -> None:
        _require_finite(self.median, self.unit, self.centre, self.factor)
        if self.unit <= 0 or self.factor <= 0:
            raise ValueError("unit and factor must be positive")

    def apply(self, cells: Array) -> Array:
        return (_bend(cells, self.median, self.unit) - self.centre) * self.factor


class Places(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="places"):
    """Straight lines between knots (x, value), and level beyond the first and the last of them."""

    parent: int
    knots: tuple[float, ...]  # increasing
    values: tuple[float, ...]  # not decreasing

    def __post_init__(self) -> None:
        _require_finite(*self.knots, *self.values)
        if not 2 <= len(self.knots) == len(self.values) <= MOST_KNOTS:
            raise ValueError(f"knots and values must be as many, from 2 to {MOST_KNOTS}")
        if np.any(np.diff(self.knots) <= 0) or np.any(np.diff(self.values) < 0):
            raise ValueError("knots must increase, and values must not decrease")

    def apply(self, cells: Array) -> Array:
        knots = np.array(self.knots)
        with np.errstate(over="ignore"):
            if np.isinf(knots[-1] - knots[0]):
                knots, cells = knots / 2, cells / 2
        return np.asarray(np.interp(cells, knots, self.values))


class Equal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="equal"):
    """One frequent value: x ↦ ([x = value] − share)·`TWO_VALUES`."""

    parent: int
    value: float
    share: float  # of the training rows

    def __post_init__(self) -> None:
        _require_finite(self.value, self.share)

    def apply(self, cells: Array) -> Array:
        return np.asarray(((cells == self.value) - self.share) * TWO_VALUES)


class Proportional(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="proportional"):
    """x ↦ x·factor, of a column of a sparse table."""

    parent: int
    factor: float

    def __post_init__(self) -> None:
        _require_finite(self.factor)

    def apply(self, cells: Array) -> Array:
        return cells * self.factor


EncodedColumn: TypeAlias = Smooth | Places | Equal | Proportional


class Encoding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns that a table's columns become.

    ``columns`` are the titles of the table that it was learned on. Those of an encoded table are
    ``titles``, and ``parents`` has the number of the column that each was made of.
    """

    kind: EncodingKind
    columns: tuple[str, ...]
    encoded: tuple[EncodedColumn, ...]
    remarks: tuple[str, ...] = ()
    """Remarks for the owner: columns that were left out, and why."""

    def __post_init__(self) -> None:
        if any(not 0 <= column.parent < len(self.columns) for column in self.encoded):
            raise ValueError("each encoded column must be made of a column of the table")

    @property
    def width(self) -> int:
        return len(self.encoded)

    @property
    def parents(self) -> tuple[int, ...]:
        """The number of the original column of each encoded one."""
        return tuple(column.parent for column in self.encoded)

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of the encoded columns, such as ``gain`` and ``gain = 0``."""
        return tuple(
            f"{self.columns[column.parent]} = {column.value:g}"
            if isinstance(column, Equal)
            else self.columns[column.parent]
            for column in self.encoded
        )

    def apply(self, table: Table) -> Table:
        """Encode all rows of a table with these columns.

        >>> learned = learn_encoding(Table("shop", ("age",), [[20.0], [40.0], [60.0]]), "quantile")
        >>> asked = Table("shop", ("age",), [[20.0], [30.0], [99.0]])
        >>> learned.apply(asked).block(slice(None)).round(2).T
        array([[-1.15, -0.58,  1.15]])
        """
        if table.width != len(self.columns):
            raise InputError.of(
                f"table of {table.party}", f"{len(self.columns)} columns wide", table.width
            )
        if self._is_proportional and table.is_sparse:
            return Table(table.party, self.titles, self._sparse(table))
        values = np.empty((table.rows, self.width))
        for span in table.spans(_HEIGHT):
            block = table.block(span)
            dense = np.ascontiguousarray((block.toarray() if table.is_sparse else block).T)
            for i, column in enumerate(self.encoded):
                values[span, i] = column.apply(dense[column.parent])
        return Table(table.party, self.titles, values)

    @property
    def _is_proportional(self) -> bool:
        return all(isinstance(column, Proportional) for column in self.encoded)

    def _sparse(self, table: Table) -> Any:
        factors = [column.factor for column in self.encoded if isinstance(column, Proportional)]
        kept = sparse.csc_array(table.raw(slice(None)).astype(np.float64))[:, list(self.parents)]
        return sparse.csr_array(kept @ sparse.diags_array(factors, dtype=np.float64))


def learn_encoding(table: Table, kind: str, *, rows: Array | None = None) -> Encoding:
    """Learn the encoding of this kind on a table's rows, all of them or those of these numbers.

    The cells must be finite: filling in what is missing is a preparation's work.
    """
    if kind not in ENCODINGS:
        raise InputError.of("kind", f"one of {list(ENCODINGS)}", kind)
    block = table.block(slice(None) if rows is None else rows)
    _check_finite(table, block)
    if table.is_sparse and block.nnz <= STAYS_SPARSE * block.shape[0] * block.shape[1]:
        peaks = np.asarray(abs(block).max(axis=0).toarray()).ravel()
        found = [_proportional(i, float(peak)) for i, peak in enumerate(peaks)]
    else:
        columns = np.ascontiguousarray((block.toarray() if table.is_sparse else block).T)
        most = min(MOST_KNOTS, max(_FEWEST_KNOTS, KNOTS_OF_TABLE // max(table.width, 1)))
        found = [_encode_column(i, cells, kind, most) for i, cells in enumerate(columns)]
    remarks = tuple(
        f"{table.title(i)} is constant and was ignored" for i, made in enumerate(found) if not made
    )
    encoded = tuple(column for made in found for column in made)
    return Encoding(kind, table.columns, encoded, remarks)


def _check_finite(table: Table, block: Any) -> None:
    low, high = column_bounds(block)
    check_bounds(table, low, high, varying=False)


def _encode_column(parent: int, cells: Array, kind: str, most: int) -> list[EncodedColumn]:
    """Learn what one dense column becomes: no column at all if it is constant."""
    values, counts = np.unique(cells, return_counts=True)
    if len(values) < 2:
        return []
    if len(values) == 2:
        share = float(counts[1] / len(cells))
        ends = (-share * TWO_VALUES, (1 - share) * TWO_VALUES)
        return [Places(parent, tuple(values.tolist()), ends)]
    encoded: list[EncodedColumn] = []
    if counts.max() >= SPIKE * len(cells):
        order = np.argsort(-counts, kind="stable")[:MOST_FREQUENT]
        encoded += [
            Equal(parent, float(values[i]), float(counts[i] / len(cells)))
            for i in order
            if counts[i] >= LEAST_FREQUENT
        ]
    if kind == "smooth":
        return [_smooth(parent, cells, values, counts), *encoded]
    return [_places(parent, values, counts, kind, most), *encoded]


def _smooth(parent: int, cells: Array, values: Array, counts: Array) -> Smooth:
    low, median, high = np.quantile(cells, (0.25, 0.5, 0.75))
    # Halves, since the difference of two huge numbers can overflow.
    width = high / 2 - low / 2
    if width <= 0:
        width = values[-1] / 2 - values[0] / 2
    unit = float(np.clip(width * (2 / _QUARTILE_UNITS), *_POSITIVE))
    bent = _bend(values, float(median), unit)
    centre = float(np.average(bent, weights=counts))
    deviation = float(np.sqrt(np.average(np.square(bent - centre), weights=counts)))
    return Smooth(parent, float(median), unit, centre, 1 / max(deviation, _LEAST_DEVIATION))


def _bend(cells: Array, median: float, unit: float) -> Array:
    """z/√(1 + (z/3)²) of z = (cells − median)/unit."""
    with np.errstate(over="ignore"):
        z = np.clip((cells / 2 - median / 2) / (unit / 2), -_FARTHEST, _FARTHEST)
    return np.asarray(z / np.hypot(1, z / _SATURATION))


def _places(parent: int, values: Array, counts: Array, kind: str, most: int) -> Places:
    weights = np.sqrt(counts)
    places = (np.cumsum(weights) - weights / 2) / weights.sum()
    if len(values) > most:
        # Evenly over the places: a value that many rows share is then a knot of its own.
        wanted = np.linspace(places[0], places[-1], most)
        kept = np.unique(np.searchsorted(places, wanted).clip(max=len(values) - 1))
        values, places = values[kept], places[kept]
    if kind == "normal":
        scores = ndtri(np.clip(places, _OUTERMOST, 1 - _OUTERMOST))
    else:
        scores = (places - 0.5) * np.sqrt(12)
    return Places(parent, tuple(values.tolist()), tuple(scores.tolist()))


def _proportional(parent: int, peak: float) -> list[EncodedColumn]:
    return [Proportional(parent, TWO_VALUES / peak)] if peak > 0 else []


def _require_finite(*numbers: float) -> None:
    if not np.isfinite(numbers).all():
        raise ValueError("numbers of an encoding must be finite")
