"""The curve of a stochastic run: the AUC on rows that no step uses, measured a few dozen times.

For each point the leader asks for the summed partial predictions of these rows. It learns f of rows
whose labels it knows.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.learner import Learner, number_of_steps

Array = npt.NDArray[Any]

POINTS = 40
"""Points of a curve."""

MOST_ROWS = 4096
"""Rows that a point is measured on; more would cost more than they tell."""


class Summing(Protocol):
    """Sum of partial predictions that one label party receives."""

    def to(self, receiver: str, partial: Array) -> Array | None: ...


class ValidationCurve:
    """Points of one run, measured on held-out ``rows``.

    Without such rows a point only counts updates and staleness.
    """

    def __init__(self, settings: FdsklSettings, rows: Array, positive: Array) -> None:
        if settings.hides:
            # Each point would open f of these rows once more.
            rows = rows[:0]
        self.leader = settings.label_parties[0]
        self.rows = rows[:: max(1, -(-len(rows) // MOST_ROWS))]
        self._positive = positive[self.rows]
        self.interval = max(1, number_of_steps(settings) // POINTS)

    def due(self, step: int) -> bool:
        """Return True if a point is to be added after this step."""
        return step % self.interval == 0

    def add_point(self, learner: Learner, sums: Summing) -> None:
        """Add a point; all label parties call it after the same step."""
        f = None
        if len(self.rows):
            batch = learner.operator.restricted(self.rows)
            f = sums.to(self.leader, learner.partial(batch))
        learner.mark(None if f is None else self.score(f))

    def score(self, f: Array) -> float:
        """Return the AUC of these predictions (rows, 1)."""
        return auc(f[:, 0], self._positive)


def auc(f: Array, positive: Array) -> float:
    """AVFKAM eq. (1): the share of pairs in which the positive row is ranked above; ties half."""
    order = np.argsort(f)
    _, first, counts = np.unique(f[order], return_index=True, return_counts=True)
    ranks = np.empty(len(f))
    ranks[order] = np.repeat(first + (counts + 1) / 2, counts)
    ups = int(positive.sum())
    downs = len(f) - ups
    return float((ranks[positive].sum() - ups * (ups + 1) / 2) / (ups * downs))
