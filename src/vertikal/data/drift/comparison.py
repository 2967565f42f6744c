"""The comparison of a table with the profile of training: what has changed, and by how much.

A distribution has moved if its population stability index, Σ (q − p) ln(q/p) over the bins of
training, is above `MOVED` and above what chance gives: without drift it is about (1/n + 1/m) times
a chi-squared variable (Yurdakul, Statistical properties of the population stability index, 2018).
So a table of thirty people does not warn at every column.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from vertikal.data.drift.profile import (
    CategoryProfile,
    NumberProfile,
    Profile,
    count_between,
    read_cells,
)
from vertikal.data.sources import Source

Array = npt.NDArray[Any]

MOVED = 0.2
"""Index above which a distribution has moved; a usual rule reads 0.1 to 0.25 as some drift."""
CHANCE = 1e-4
"""Probability with which chance alone may pass for a moved distribution."""
BEYOND = 0.01
"""Share of cells outside what training had, from which on it is said."""
FEWEST = 3
"""Cells below which nothing is said about a share."""
MORE_MISSING = 0.05
"""Difference in the share of missing cells from which on it is said."""


class Drift(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which a column differs from training; ``words`` tell shares, and no cell."""

    column: str
    what: Literal["type", "missing", "range", "categories", "distribution"]
    words: str


def compare(profile: Profile, source: Source) -> tuple[Drift, ...]:
    """List how the columns of a table differ from those of training; empty if they do not."""
    kinds = {
        one.name: "number" if isinstance(one, NumberProfile) else "category"
        for one in profile.columns
    }
    cells = read_cells(source, kinds)
    found: list[Drift] = []
    for one in profile.columns:
        if isinstance(one, CategoryProfile):
            found += _categories(one, cells[one.name])
        elif cells[one.name] is None:
            found.append(Drift(one.name, "type", "it has text, and training had numbers"))
        else:
            found += _numbers(one, cells[one.name])
    return tuple(found)


def _numbers(then: NumberProfile, cells: Array) -> list[Drift]:
    there = cells[~np.isnan(cells)]
    found = _missing(then, len(cells), len(cells) - len(there))
    if not len(there) or not then.rows:
        return found
    beyond = int(((there < then.low) | (there > then.high)).sum())
    # By chance one of n + 1 rows is below all n of training, and one above.
    if beyond >= FEWEST and beyond / len(there) > max(BEYOND, 10 / (then.rows + 1)):
        share = beyond / len(there)
        words = f"{share:.1%} of its cells are outside the range of training"
        found.append(Drift(then.name, "range", words))
    now = count_between(there, np.array(then.edges))
    return found + _distribution(then.name, then.counts, now)


def _categories(then: CategoryProfile, cells: list[str | None]) -> list[Drift]:
    words = Counter(cells)
    absent = words.pop(None, 0)
    found = _missing(then, len(cells), absent)
    rows = sum(words.values())
    unseen = sum(count for word, count in words.items() if word not in then.counts)
    if unseen >= FEWEST and unseen / rows > BEYOND:
        said = f"{unseen / rows:.1%} of its cells are categories that training did not have"
        found.append(Drift(then.name, "categories", said))
    before = tuple(then.counts.values())
    return found + _distribution(then.name, before, tuple(words[word] for word in then.counts))


def _missing(then: NumberProfile | CategoryProfile, rows: int, missing: int) -> list[Drift]:
    all_then = then.rows + then.missing
    if not rows or not all_then:
        return []
    before, now = then.missing / all_then, missing / rows
    pooled = (then.missing + missing) / (all_then + rows)
    chance = 4 * np.sqrt(pooled * (1 - pooled) * (1 / all_then + 1 / rows))
    if abs(now - before) <= max(MORE_MISSING, chance):
        return []
    words = f"{now:.1%} of its cells are missing, {before:.1%} in training"
    return [Drift(then.name, "missing", words)]


def _distribution(name: str, before: tuple[int, ...], now: tuple[int, ...]) -> list[Drift]:
    if len(before) < 2 or not sum(before) or not sum(now):
        return []
    index = stability_index(before, now)
    chance = chdtri(len(before) - 1, CHANCE) * (1 / sum(before) + 1 / sum(now))
    if index <= max(MOVED, chance):
        return []
    return [Drift(name, "distribution", f"its distribution has moved (index {index:.2f})")]


def stability_index(before: tuple[int, ...], now: tuple[int, ...]) -> float:
    """Compute the population stability index; half a cell more per bin keeps it finite.

    >>> round(stability_index((50, 50), (80, 20)), 2)
    0.41
    """
    p, q = ((np.array(one) + 0.5) / (sum(one) + 0.5 * len(one)) for one in (before, now))
    return float(((q - p) * np.log(q / p)).sum())
