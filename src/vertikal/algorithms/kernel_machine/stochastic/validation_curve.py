"""Watching a stochastic run: the AUC on rows that no step uses, a few dozen times.

The leader asks for the sum of the partial predictions of these rows and draws its curve; what it
learns is f on rows of which it knows the labels.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.learner import Learner, steps_of

Array = npt.NDArray[Any]

POINTS = 40
"""Points of a curve."""

MOST_ROWS = 4096
"""Rows that are looked at; more would cost more than they tell."""


class Summing(Protocol):
    """Adds up partial predictions at one label party."""

    def to(self, receiver: str, partial: Array) -> Array | None: ...


class ValidationCurve:
    """``rows`` are those held out; with none of them only updates and staleness are followed."""

    def __init__(self, settings: FdsklSettings, rows: Array, positive: Array) -> None:
        if settings.hides:
            # Each look would open f of these rows once more.
            rows = rows[:0]
        self.leader = settings.label_parties[0]
        self.rows = rows[:: max(1, -(-len(rows) // MOST_ROWS))]
        self._positive = positive[self.rows]
        self.interval = max(1, steps_of(settings) // POINTS)

    def due(self, step: int) -> bool:
        """Whether to look after this step."""
        return step % self.interval == 0

    def add_point(self, learner: Learner, sums: Summing) -> None:
        """All label parties in step: one more point of the curves."""
        f = None
        if len(self.rows):
            batch = learner.operator.restricted(self.rows)
            f = sums.to(self.leader, learner.partial(batch))
        learner.mark(None if f is None else self.score(f))

    def score(self, f: Array) -> float:
        """The AUC of these predictions (rows, 1)."""
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
