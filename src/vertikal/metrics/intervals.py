"""Confidence intervals by the bootstrap: rows drawn anew, with a seed, and percentiles of what
comes out.

Drawing n of n rows with replacement gives each row a whole number as its weight, so that a ranking
is sorted once and not for each draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DRAWS = 400
LEVEL = 0.95


class Interval(NamedTuple):
    """A measure, and the ends of its interval; None where it cannot be had from these rows."""

    value: float | None
    low: float | None = None
    high: float | None = None


def bootstrap(
    measures: Mapping[str, Callable[[Array], float]],
    rows: int,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
) -> dict[str, Interval]:
    """Give each measure, a function of row weights (rows,), its percentile interval.

    All measures see the same draws. A draw in which one cannot be had is left out.
    """
    generator = np.random.default_rng(seed)
    found = np.empty((len(measures), draws))
    for number in range(draws):
        weights = np.bincount(generator.integers(0, rows, rows), minlength=rows).astype(float)
        found[:, number] = [measure(weights) for measure in measures.values()]
    intervals = {}
    for (name, measure), drawn in zip(measures.items(), found, strict=True):
        usable = drawn[np.isfinite(drawn)]
        tails = [(1 - level) / 2, (1 + level) / 2]
        ends: Any = np.quantile(usable, tails) if len(usable) else []
        value = measure(np.ones(rows))
        intervals[name] = (
            Interval(value, *map(float, ends)) if np.isfinite(value) else Interval(None)
        )
    return intervals
