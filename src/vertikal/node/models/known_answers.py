"""Golden rows: invented rows with a party's own answers to them, kept beside its shard.

What a party contributes to a prediction is drawn again from its seed at each load, so a library
that draws or multiplies differently would silently make another model of the same file. These rows
are no person's; they say whether this installation still gives the answers that were stored.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.admm.shard import AdmmShard
from vertikal.algorithms.kernel_machine.directions import draw
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.data.tables import Table

Array = npt.NDArray[Any]

ROWS = 4
TOLERANCE = 1e-9
"""Relative to the largest answer: other processors round differently, other draws are far off."""


def golden_rows(width: int) -> Array:
    """(4, width) numbers between −1 and 1, the same everywhere."""
    return np.cos(np.outer(np.arange(1, ROWS + 1), np.arange(1, width + 1)))


@singledispatch
def answers(shard: Any, rows: Array) -> Array:
    """What the shard's party makes of these rows by itself: (4, numbers)."""
    raise NotImplementedError(type(shard).__name__)


def has_answers(kind: type) -> bool:
    """Whether a kind of shard is known here; others are stored without golden rows."""
    return answers.dispatch(kind) is not answers.dispatch(object)


@answers.register
def _of_fdskl(shard: Shard, rows: Array) -> Array:
    """Projections on the party's own directions, or distances to its own landmarks."""
    centre, factor = shard.scaling.arrays()
    if shard.settings.feature_map == "landmarks":
        scaled = (rows - centre) * factor
        return np.hstack(
            [
                np.square(scaled[:, None, :] - points).sum(axis=2)
                for points in shard.landmarks.values()
            ]
        )
    parts = []
    for owner in shard.settings.widths():
        drawn = draw(shard, owner)
        parts.append((rows - drawn.centre) @ drawn.directions)
        parts.append(np.tile(drawn.offsets.astype(np.float64), (len(rows), 1)))
    return np.hstack(parts)


@answers.register
def _of_admm(shard: AdmmShard, rows: Array) -> Array:
    """The party's contribution to the prediction."""
    design = shard.features.design(Table(shard.party, shard.columns, rows))
    return np.asarray(design.forward(shard.coefficients))


def difference(shard: Any, rows: Array, stored: Array) -> float:
    """The largest difference of today's answers from the stored ones, in units of these."""
    now = answers(shard, rows)
    if now.shape != stored.shape:
        return float("inf")
    return float(np.abs(now - stored).max(initial=0) / max(1.0, np.abs(stored).max(initial=0)))
