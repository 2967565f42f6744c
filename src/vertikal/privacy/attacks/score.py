"""Scores of an attack, by somebody who knows the truth. No attack uses anything of this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from vertikal.errors import InputError

Array = npt.NDArray[Any]

ALMOST_EXACT = 0.99
CLOSE = 0.9


@dataclass(frozen=True)
class AttackScore:
    """The hidden columns and rows that a separation recovered."""

    columns: int
    almost_exact: int  # columns matched with |correlation| > 0.99
    close: int  # columns matched with |correlation| > 0.9
    rows: float
    """Share of rows that are right in all almost exact columns together, for discrete ones."""


def score(components: Array, truth: Array) -> AttackScore:
    """Judge ``components`` (rows, rank) by the hidden columns ``truth`` (rows, columns)."""
    correlations = matched_correlations(components, truth)
    found = correlations > ALMOST_EXACT
    right = exact_rows(snapped(components, truth)[:, found], truth[:, found])
    return AttackScore(
        truth.shape[1],
        int(found.sum()),
        int((correlations > CLOSE).sum()),
        float(right.mean()) if found.any() else 0.0,
    )


def matched_correlations(components: Array, truth: Array) -> Array:
    """|correlation| of each true column (columns,) with the component assigned to it, 0 if none is.

    Each component counts for one column; the assignment makes the sum as large as possible.
    """
    correlations, chosen, columns = _match(components, truth)
    matched = np.zeros(truth.shape[1])
    matched[columns] = np.abs(correlations[chosen, columns])
    return matched


def snapped(components: Array, truth: Array) -> Array:
    """Each true column as its component tells it: brought to its scale, then to its nearest level.

    Columns without a component come out as their most frequent level, the best guess without data.
    """
    correlations, chosen, columns = _match(components, truth)
    estimate = np.empty_like(truth, dtype=np.float64)
    for column in range(truth.shape[1]):
        levels, counts = np.unique(truth[:, column], return_counts=True)
        estimate[:, column] = levels[np.argmax(counts)]
        for component in chosen[columns == column]:
            values = _standardised(components[:, [component]])[:, 0]
            values = values * correlations[component, column] * truth[:, column].std()
            values += truth[:, column].mean()
            nearest = np.searchsorted((levels[1:] + levels[:-1]) / 2, values)
            estimate[:, column] = levels[nearest]
    return estimate


def exact_rows(estimate: Array, truth: Array) -> Array:
    """Mask (rows,) of the rows that are right in every column."""
    if estimate.shape != truth.shape:
        raise InputError.of("estimate", f"of shape {truth.shape}", estimate.shape)
    return np.asarray((estimate == truth).all(axis=1))


def _match(components: Array, truth: Array) -> tuple[Array, Array, Array]:
    """Correlations (rank, columns), and the assignment as two lists of equal length."""
    if len(components) != len(truth):
        raise InputError.of("components", f"{len(truth)} rows long", len(components))
    correlations = _standardised(components).T @ _standardised(truth) / len(truth)
    chosen, columns = linear_sum_assignment(np.abs(correlations), maximize=True)
    return correlations, chosen, columns


def _standardised(columns: Array) -> Array:
    """Mean 0 and deviation 1; a constant column becomes 0, and so correlates with nothing."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    negligible = spread <= 1e-12 * (1 + np.abs(columns).max(axis=0, initial=0.0))
    return np.asarray(np.where(negligible, 0.0, centred) / np.where(negligible, 1.0, spread))
