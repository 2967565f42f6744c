"""Ids in one written form, and counts of what is wrong with a column, before anything is sent.

The rule. An id is text or a whole number. Text is brought to Unicode's composed form (NFC) and
white space at both ends is dropped; case, inner spaces and leading zeros are kept. A whole number
is written in decimal. So 42 in a database and "42" in a CSV file are one id, "042" is another, and
"ab" and "AB" are two. A column is of one kind. Missing and repeated ids are refused.

Messages count and never show an id: they may reach other parties.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vertikal.errors import InputError

RULE = "NFC, outer white space dropped, case kept, whole numbers in decimal"
"""The rule in a line, for jobs and messages."""

_TEXT, _NUMBER, _MISSING = "text", "whole number", "missing"


@dataclass(frozen=True)
class IdReport:
    """Counts of what a column of ids holds."""

    rows: int
    kinds: dict[str, int]  # how many ids are of which kind; without the missing ones
    missing: int  # nothing, NaN, or nothing but white space
    repeated: int  # rows whose id stands in an earlier row
    with_zeros: int  # of digits only, and the first is 0

    def problems(self) -> list[str]:
        """List the reasons why this column cannot be used, one clause each."""
        found = []
        if not self.rows:
            found.append("there are none")
        if self.missing:
            found.append(f"{self.missing} are missing or empty")
        strange = {kind: n for kind, n in self.kinds.items() if kind not in (_TEXT, _NUMBER)}
        found += [f"{n} are of type {kind}" for kind, n in strange.items()]
        if len(self.kinds) > 1 and not strange:
            found.append(" and ".join(f"{n} are a {kind}" for kind, n in self.kinds.items()))
        if self.repeated:
            found.append(f"{self.repeated} rows repeat the id of an earlier row")
        return found

    def remarks(self) -> list[str]:
        """List what may be meant, and may also be a mistake."""
        if not self.with_zeros:
            return []
        return [
            f"{self.with_zeros} ids are digits that begin with 0; a party that keeps them as "
            "numbers has lost the zeros and cannot match"
        ]


@dataclass(frozen=True)
class Ids:
    """A party's ids in their written form, in the order of its rows; all distinct."""

    party: str
    values: tuple[bytes, ...]
    report: IdReport

    def __len__(self) -> int:
        return len(self.values)


def normalise(party: str, column: Iterable[Any]) -> Ids:
    """Write the ids of ``party`` by the rule above; InputError with counts if some cannot be."""
    values, report = write_ids(column)
    problems = report.problems()
    if problems:
        raise InputError(
            f"ids of {party}: of {report.rows}, {'; '.join(problems)}; ids must be distinct and "
            "all text or all whole numbers, correct the column"
        )
    return Ids(party, tuple(values), report)


def write_ids(column: Iterable[Any]) -> tuple[list[bytes], IdReport]:
    """Write every id by the rule above, empty where that is impossible, and count them."""
    kinds: Counter[str] = Counter()
    values = []
    for value in _plain(column):
        kind, written = _write(value)
        kinds[kind] += 1
        values.append(written.encode())
    missing = kinds.pop(_MISSING, 0)
    present = [value for value in values if value]
    report = IdReport(
        rows=len(values),
        kinds=dict(kinds),
        missing=missing,
        repeated=len(present) - len(set(present)),
        with_zeros=sum(v[:1] == b"0" and len(v) > 1 and v.isdigit() for v in present),
    )
    return values, report


def _plain(column: Iterable[Any]) -> Iterable[Any]:
    """Turn whatever kind of column into Python's own objects."""
    for name in ("to_pylist", "tolist"):
        if hasattr(column, name):
            plain: Iterable[Any] = getattr(column, name)()
            return plain
    return column


def _write(value: Any) -> tuple[str, str]:
    """The kind of a value, and its written form."""
    if isinstance(value, str):
        written = unicodedata.normalize("NFC", value.strip())
        return (_TEXT, written) if written else (_MISSING, "")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "bool", ""
    if isinstance(value, int):
        return _NUMBER, str(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return _MISSING, ""
    return type(value).__name__, ""
