"""Measures of probabilities and of the decisions that follow from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.metrics.ranking import Curve

Array = npt.NDArray[Any]

SMALLEST = np.finfo(np.float64).eps
"""Probability below which a surprise is not counted as greater."""
BINS = 10
BARS = 20


def log_loss(probabilities: Array, places: Array, weights: Array) -> float:
    """Mean of −log of the probability (rows, classes) that the row's own class was given."""
    own = probabilities[np.arange(len(places)), places]
    return float(-(weights @ np.log(np.clip(own, SMALLEST, 1.0))) / weights.sum())


def brier(probabilities: Array, positive: Array, weights: Array) -> float:
    """Mean square of the difference between probability (rows,) and outcome, 0 or 1."""
    return float(weights @ np.square(probabilities - positive) / weights.sum())


def accuracy(predicted: Array, places: Array, weights: Array) -> float:
    """Share of the rows whose predicted class is their own."""
    return float(weights @ (predicted == places) / weights.sum())


def f1(predicted: Array, positive: Array, weights: Array) -> float:
    """Harmonic mean of precision and recall; 0 if no row is positive or called so."""
    both = weights @ (predicted & positive)
    either = weights @ predicted + weights @ positive
    return float(2 * both / either) if either else 0.0


def calibration(probabilities: Array, positive: Array, bins: int = BINS) -> Curve:
    """Share of positive rows over the mean probability, in bins of as many rows each."""
    order = np.argsort(probabilities, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return Curve(
        tuple(float(probabilities[part].mean()) for part in parts),
        tuple(float(positive[part].mean()) for part in parts),
    )


def histogram(scores: Array, low: float, high: float, bars: int = BARS) -> Curve:
    """Share of the rows in each of ``bars`` equal steps from ``low`` to ``high``, by its middle."""
    counts, edges = np.histogram(scores, bars, (low, high))
    middles = (edges[1:] + edges[:-1]) / 2
    return Curve(tuple(map(float, middles)), tuple(map(float, counts / max(len(scores), 1))))
