"""A survey of one column over all its rows: numbers or categories, missing cells, spread.

A survey is fed block by block and keeps counts, bounds and a bounded set of texts, never the cells.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.data.cells import NOTHING, NUMBER, TEXT, kind_of, numbers, parsed, texts
from vertikal.data.file_formats import COMMA_NUMBER
from vertikal.errors import InputError

Array = npt.NDArray[Any]

MOST_CATEGORIES = 512
"""Categories of one column that get a column each, the most frequent ones; others count as rare."""
MOST_TEXTS = 10_000
"""Different texts of one column of categories, all of which are kept with the model."""
FEW_TEXTS = 64
"""Different texts up to which they need not repeat in many rows to be categories."""
RARE_ROWS = 10
"""Rows below which a category is rare, if they are fewer than `RARE_SHARE` of all rows too."""
RARE_SHARE = 0.01
_FEWEST_IDS = 20
_FEWEST_NUMBERED = 100
_NARROW = 10


class ColumnSurvey:
    """Survey of one column; ``category`` says that its numbers only name things."""

    def __init__(self, name: str, category: bool) -> None:
        self.name = name
        self.is_numbers = not category
        self.missing = 0
        self.words: Counter[str] = Counter()
        self._category = category
        self._present = 0
        self._low, self._high = np.inf, -np.inf
        self._total = 0.0
        self._kinds: set[str] = set()

    @property
    def mean(self) -> float:
        return self._total / max(1, self._present)

    def frequent_and_rare(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The categories, sorted: those with enough rows, and those that share one column.

        A lone rare category has a column to itself in either case, and counts as frequent.
        """
        least = min(RARE_ROWS, RARE_SHARE * (self._present + self.missing))
        by_rows = sorted(self.words, key=lambda word: (-self.words[word], word))
        frequent = [word for word in by_rows if self.words[word] >= least][:MOST_CATEGORIES]
        rare = by_rows[len(frequent) :]
        if len(rare) < 2:
            frequent, rare = by_rows, []
        return tuple(sorted(frequent)), tuple(sorted(rare))

    def update(self, party: str, cells: Any) -> None:
        """Take in the next cells of the column."""
        kind = kind_of(cells)
        if kind not in (NUMBER, TEXT, NOTHING):
            raise InputError(
                f"column {self.name!r} of party {party!r} must be of numbers or text, got {kind}; "
                "turn it into numbers in the source"
            )
        self._kinds.add(kind)
        if {NUMBER, TEXT} <= self._kinds:
            raise InputError(
                f"column {self.name!r} of party {party!r} must be all numbers or all text, got both"
            )
        if kind == TEXT or self._category:
            self._count_words(party, texts(cells))
        else:
            self._count_numbers(party, numbers(cells))

    def constant(self) -> str:
        """Say why this column tells nothing about any row; empty if it does."""
        if not self._present:
            return "no cell is there"
        if self.is_numbers:
            return "it is the same number in each row" if self._low == self._high else ""
        if len(self.words) == 1 and not self.missing:
            return "it is the same text in each row"
        return ""

    def id_like(self) -> str:
        """Say why these texts look like ids or free text; empty if they do not."""
        if self.is_numbers:
            return ""
        if len(self.words) > 1 and all(re.match(COMMA_NUMBER, word) for word in self.words):
            return 'it has numbers with a decimal comma: set decimal = "," for its table'
        if len(self.words) > MOST_TEXTS:
            return f"it has more than {MOST_TEXTS:,} different texts, as an id or free text has"
        repeated = sum(count for count in self.words.values() if count >= RARE_ROWS)
        if len(self.words) > FEW_TEXTS and 2 * repeated < self._present:
            return (
                f"it has {len(self.words):,} different texts, most of them in fewer than "
                f"{RARE_ROWS} rows, as an id or free text has"
            )
        if self._present >= _FEWEST_IDS and len(self.words) == self._present:
            return "no two texts are equal, as with an id"
        return ""

    def _count_words(self, party: str, words: Any) -> None:
        found = parsed(words) if self.is_numbers else None
        if found is None:
            self.is_numbers = False
            self._present += len(words) - words.null_count
            self.missing += words.null_count
        else:
            self._count_numbers(party, found)
        if len(self.words) <= MOST_TEXTS:
            for one in words.drop_null().value_counts().to_pylist():
                self.words[one["values"]] += one["counts"]

    def _count_numbers(self, party: str, found: Array) -> None:
        there = found[~np.isnan(found)]
        if np.isinf(there).any():
            raise InputError(f"column {self.name!r} of party {party!r} must hold finite numbers")
        self._present += len(there)
        self.missing += len(found) - len(there)
        self._low = min(self._low, there.min(initial=np.inf))
        self._high = max(self._high, there.max(initial=-np.inf))
        self._total += float(there.sum())


def is_numbering(column: Array) -> bool:
    """Tell if these numbers are whole, all different and close together, as numbers of rows are."""
    if len(column) < _FEWEST_NUMBERED or not (column == np.floor(column)).all():
        return False
    return bool(np.ptp(column) < _NARROW * len(column) and len(np.unique(column)) == len(column))
