"""Measures of a ranking: AUC, average precision, and the curves that a threshold runs along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Curve(NamedTuple):
    """Points (x, y) of a line."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    @classmethod
    def through(cls, x: Array, y: Array, most: int = 200) -> Curve:
        """Keep ``most`` of the points, evenly along the line, with both of its ends."""
        if len(x) > most:
            steps = np.abs(np.diff(x)) / (np.ptp(x) or 1.0) + np.abs(np.diff(y)) / (
                np.ptp(y) or 1.0
            )
            way = np.concatenate([[0.0], np.cumsum(steps)])
            wanted = np.linspace(0.0, way[-1], most)
            kept = np.unique(np.clip(np.searchsorted(way, wanted), 0, len(x) - 1))
            x, y = x[kept], y[kept]
        return cls(tuple(map(float, x)), tuple(map(float, y)))


@dataclass(frozen=True)
class Ranking:
    """Rows by score, the highest first; rows of equal scores stand together."""

    places: Array  # (rows,) the place of each row's score among all different scores
    positive: Array  # (rows,) bool

    @classmethod
    def of(cls, scores: Array, positive: Array) -> Ranking:
        """Rank these scores (rows,)."""
        return cls(np.unique(-scores, return_inverse=True)[1].reshape(-1), np.asarray(positive))

    def counts(self, weights: Array | None = None) -> tuple[Array, Array]:
        """Count positive and other rows at or above each score, from none to all of them."""
        weights = np.ones(len(self.places)) if weights is None else weights
        found = np.bincount(self.places, weights * self.positive)
        rest = np.bincount(self.places, weights * ~self.positive)
        return np.concatenate([[0.0], found.cumsum()]), np.concatenate([[0.0], rest.cumsum()])

    def auc(self, weights: Array | None = None) -> float:
        """Probability that a positive row stands above another one, equal scores counting half.

        NaN if one of the two classes is missing.
        """
        found, rest = self.counts(weights)
        pairs = found[-1] * rest[-1]
        if not pairs:
            return float("nan")
        area = np.diff(rest) @ (found[1:] + found[:-1]) / 2
        return float(area / pairs)

    def average_precision(self, weights: Array | None = None) -> float:
        """Σ (recall_k − recall_{k−1})·precision_k over all thresholds; NaN without positives."""
        found, rest = self.counts(weights)
        if not found[-1]:
            return float("nan")
        asked = found[1:] + rest[1:]
        precision = np.divide(found[1:], asked, out=np.zeros_like(asked), where=asked > 0)
        return float(np.diff(found) @ precision / found[-1])

    def roc(self) -> Curve:
        """True positive rate over false positive rate."""
        found, rest = self.counts()
        return Curve.through(rest / max(rest[-1], 1), found / max(found[-1], 1))

    def precision_recall(self) -> Curve:
        """Precision over recall."""
        found, rest = self.counts()
        return Curve.through(
            found[1:] / max(found[-1], 1), found[1:] / np.maximum(found[1:] + rest[1:], 1)
        )

    def gain(self) -> Curve:
        """Share of the positive rows that is found among the highest scores, over their share."""
        found, rest = self.counts()
        asked = found + rest
        return Curve.through(asked / max(asked[-1], 1), found / max(found[-1], 1))
