"""Preparation of a party's columns as numbers: learned on training rows, replayed at prediction.

Everything here is local to one party: nothing of it is told to others. The rules:

- A column is of **numbers** if every cell that is there is one, in whatever form the source keeps
  it; else it is of **categories**, and each category of the training rows becomes a column of 0
  and 1. Rare ones, with fewer rows than 10 and than 1 % of all, share one column, and so do all
  beyond the `MOST_CATEGORIES` most frequent. A category that training did not have becomes all
  zeros, and is counted.
- **Missing** cells, by a policy: ``refuse`` (an error with counts), ``mean`` (numbers take the mean
  of the training rows, categories become all zeros), or ``indicator`` (as ``mean``, and one more
  column says where a cell was missing, if any was in training).
- **Constant** columns, and those without a cell, tell nothing: dropped with a remark. **Id-like**
  columns are of no use either, and more likely a mistake: refused, or dropped with a remark. They
  are texts of which no two are equal, or more than `FEW_TEXTS` of which most are in fewer than 10
  rows, and whole numbers in a narrow range of which no two are equal, as customer numbers are.
- **Scaling** is optional here, since programs scale too.

A `Preparation` is plain data: it is stored as JSON beside the shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.data.cells import NOTHING, NUMBER, TEXT, kind_of, numbers, parsed, places_of, texts
from vertikal.data.column_survey import ColumnSurvey, is_numbering
from vertikal.data.row_choice import RowChoice
from vertikal.data.scaling import SCALES, Scaling, learn_scaling
from vertikal.data.sources import Source
from vertikal.data.tables import Table
from vertikal.errors import InputError

Array = npt.NDArray[Any]

MISSING = ("refuse", "mean", "indicator")
UNUSABLE = ("refuse", "drop")


class ColumnPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Plan for one column: the numbers that its cells become."""

    name: str
    kind: Literal["number", "category"]
    mean: float = 0.0  # of the training rows; of numbers
    categories: tuple[str, ...] = ()
    indicator: bool = False  # one more column: whether the cell was missing
    rare: tuple[str, ...] = ()  # categories that share one more column

    @property
    def titles(self) -> tuple[str, ...]:
        """The columns that it becomes."""
        indicator = (f"{self.name} is missing",) if self.indicator else ()
        if self.kind == "number":
            return (self.name, *indicator)
        rare = (f"{self.name} is rare",) if self.rare else ()
        return (*(f"{self.name} = {category}" for category in self.categories), *rare, *indicator)


class Preparation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plans of all columns of one party, in order, and the scaling of what they become."""

    party: str
    missing: Literal["refuse", "mean", "indicator"]
    columns: tuple[ColumnPlan, ...]
    scaling: Scaling | None = None
    remarks: tuple[str, ...] = ()
    """Remarks for the owner: columns that were dropped, and why."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(plan.name for plan in self.columns)

    @property
    def titles(self) -> tuple[str, ...]:
        """The columns that it makes."""
        return tuple(title for plan in self.columns for title in plan.titles)

    def apply(self, source: Source, rows: Array | None = None) -> Prepared:
        """Turn these rows of the source into numbers, in the order given; all rows by default."""
        blocks = RowChoice(rows)
        values = None if rows is None else np.empty((len(rows), len(self.titles)))
        parts, filled, unseen = [], dict.fromkeys(self.names, 0), dict.fromkeys(self.names, 0)
        for batch in source.blocks(self.names):
            chosen, where = blocks.take(batch)
            part = np.hstack(
                [
                    np.empty((chosen.num_rows, 0)),
                    *(
                        self._made(plan, cells, filled, unseen)
                        for plan, cells in zip(self.columns, chosen.columns, strict=True)
                    ),
                ]
            )
            if values is None:
                parts.append(part)
            else:
                values[where] = part
        blocks.check(source)
        if values is None:
            values = np.concatenate([np.empty((0, len(self.titles))), *parts])
        if self.missing == "refuse" and any(filled.values()):
            raise _refused(self.party, {name: n for name, n in filled.items() if n})
        table = Table(self.party, self.titles, self.scaled(values))
        return Prepared(
            table,
            {name: n for name, n in filled.items() if n},
            {name: n for name, n in unseen.items() if n},
        )

    def blank(self, count: int) -> Table:
        """Make rows of people of whom nothing is known: means, no category, all missing."""
        row = [
            value
            for plan in self.columns
            for value in (
                *([plan.mean] if plan.kind == "number" else [0.0] * len(plan.categories)),
                *([0.0] if plan.rare else []),
                *([1.0] if plan.indicator else []),
            )
        ]
        return Table(self.party, self.titles, self.scaled(np.tile(np.array(row), (count, 1))))

    def scaled(self, values: Array) -> Array:
        """Scale prepared numbers, if this preparation has a scaling."""
        if self.scaling is None:
            return values
        centre, factor = self.scaling.arrays()
        return np.asarray((values - centre) * factor)

    def _made(
        self, plan: ColumnPlan, cells: Any, filled: dict[str, int], unseen: dict[str, int]
    ) -> Array:
        """The columns (rows, width) that one column becomes."""
        if plan.kind == "number":
            found = _as_numbers(self.party, plan.name, cells)
            absent = np.isnan(found)
            made = np.where(absent, plan.mean, found)[:, None]
        else:
            words = texts(cells)
            absent = np.asarray(words.is_null())
            places = places_of(words, plan.categories)
            made = (places[:, None] == np.arange(len(plan.categories))).astype(np.float64)
            rare = places_of(words, plan.rare) >= 0
            if plan.rare:
                made = np.hstack((made, rare[:, None]))
            unseen[plan.name] += int(((places < 0) & ~rare & ~absent).sum())
        filled[plan.name] += int(absent.sum())
        return np.hstack((made, absent[:, None])) if plan.indicator else made


@dataclass(frozen=True)
class Prepared:
    """A table of numbers, with counts of the cells that were filled in or not known."""

    table: Table
    filled: dict[str, int] = field(default_factory=dict)  # missing cells, by column
    unseen: dict[str, int] = field(default_factory=dict)  # categories training did not have


Apply: TypeAlias = Callable[[Preparation, Source, Array | None], Prepared]
"""Turns these rows of a source into numbers."""


def learn_preparation(
    source: Source,
    columns: Sequence[str],
    *,
    rows: Array | None = None,
    missing: str = "refuse",
    categories: Sequence[str] = (),
    unusable: str = "refuse",
    scale: str | None = None,
    apply: Apply | None = None,
) -> tuple[Preparation, Prepared]:
    """Learn how to prepare ``columns`` on these rows, and prepare them.

    ``categories`` are columns of numbers that only name things. See the top of this file for
    ``missing`` and ``unusable``. ``apply`` prepares in the place of `Preparation.apply`, as workers
    do that read for themselves.
    """
    apply = apply or Preparation.apply
    for name, value, allowed in (
        ("missing", missing, MISSING),
        ("unusable", unusable, UNUSABLE),
        ("scale", scale, (None, *SCALES)),
    ):
        if value not in allowed:
            raise InputError.of(name, f"one of {list(allowed)}", value)
    surveys = _survey(source, columns, rows, set(categories))
    absent = {survey.name: survey.missing for survey in surveys if survey.missing}
    if missing == "refuse" and absent:
        raise _refused(source.party, absent)
    constant = {survey.name: why for survey in surveys if (why := survey.constant())}
    useless = {survey.name: why for survey in surveys if (why := survey.id_like())}
    plans = [
        _plan(survey, missing)
        for survey in surveys
        if survey.name not in constant and survey.name not in useless
    ]
    preparation = Preparation(source.party, missing, tuple(plans))  # type: ignore[arg-type]
    if plans:
        prepared = apply(preparation, source, rows)
        useless |= _numberings(preparation, prepared)
    if useless and unusable == "refuse":
        raise _useless(source.party, useless)
    kept = tuple(plan for plan in plans if plan.name not in useless)
    useless = constant | useless
    if not kept:
        raise InputError(
            f"columns of {source.party} must be at least one that is of use, got none: "
            f"{_listed(useless)}"
        )
    if useless:
        remarks = tuple(f"column {name!r} was dropped: {why}" for name, why in useless.items())
        preparation = msgspec.structs.replace(preparation, columns=kept, remarks=remarks)
        prepared = apply(preparation, source, rows)
    if len(set(preparation.titles)) < len(preparation.titles):
        raise InputError(
            f"columns of {source.party}: two would become columns of one title; rename"
        )
    if scale is not None:
        scaling = learn_scaling(prepared.table, scale)
        preparation = msgspec.structs.replace(preparation, scaling=scaling)
        scaled = preparation.scaled(prepared.table.block(slice(None)))
        prepared = replace(prepared, table=Table(source.party, preparation.titles, scaled))
    return preparation, prepared


def _numberings(preparation: Preparation, prepared: Prepared) -> dict[str, str]:
    """Find columns of whole numbers that look like numbers of rows, and say why they are no use."""
    column = prepared.table.column
    return {
        plan.name: "it numbers the rows, as an id does"
        for plan in preparation.columns
        if plan.kind == "number" and is_numbering(column(preparation.titles.index(plan.name)))
    }


def _survey(
    source: Source, columns: Sequence[str], rows: Array | None, categories: set[str]
) -> list[ColumnSurvey]:
    surveys = [ColumnSurvey(name, name in categories) for name in columns]
    blocks = RowChoice(rows)
    for batch in source.blocks(columns):
        chosen, _ = blocks.take(batch)
        for survey, cells in zip(surveys, chosen.columns, strict=True):
            survey.update(source.party, cells)
    blocks.check(source)
    if not blocks.taken:
        raise InputError.of(f"table of {source.party}", "of one row at least", "none")
    return surveys


def _plan(survey: ColumnSurvey, missing: str) -> ColumnPlan:
    indicator = missing == "indicator" and survey.missing > 0
    if survey.is_numbers:
        return ColumnPlan(survey.name, "number", survey.mean, (), indicator)
    frequent, rare = survey.frequent_and_rare()
    return ColumnPlan(survey.name, "category", 0.0, frequent, indicator, rare)


def _as_numbers(party: str, name: str, cells: Any) -> Array:
    """Read a column that was of numbers in training; InputError if it is not any more."""
    kind = kind_of(cells)
    found = parsed(texts(cells)) if kind == TEXT else None
    if kind in (NUMBER, NOTHING):
        found = numbers(cells)
    if found is None:
        raise InputError(
            f"column {name!r} of party {party!r} must be of numbers, as in training, got text"
        )
    if np.isinf(found).any():
        raise InputError(f"column {name!r} of party {party!r} must hold finite numbers")
    return found


def _refused(party: str, absent: dict[str, int]) -> InputError:
    counts = ", ".join(f"{n} in {name!r}" for name, n in absent.items())
    return InputError(
        f'columns of {party}: cells are missing ({counts}); choose missing = "mean" or '
        '"indicator", or fill them in'
    )


def _useless(party: str, useless: dict[str, str]) -> InputError:
    return InputError(f"columns of {party} that are of no use: {_listed(useless)}. Leave them out")


def _listed(useless: dict[str, str]) -> str:
    return "; ".join(f"{name!r}: {why}" for name, why in useless.items())
