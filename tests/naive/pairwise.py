"""Pairwise losses one pair at a time, and sums over all pairs by two loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np


def square(u: float, v: float) -> tuple[float, float, float]:
    z = u - v
    return (1 - z) ** 2, -2 * (1 - z), 2 * (1 - z)


def squared_hinge(u: float, v: float) -> tuple[float, float, float]:
    z = u - v
    return square(u, v) if z < 1 else (0.0, 0.0, 0.0)


def logistic(u: float, v: float) -> tuple[float, float, float]:
    z = u - v
    if z >= 0:
        weight = math.exp(-z) / (1 + math.exp(-z))
        return math.log1p(math.exp(-z)), -weight, weight
    weight = 1 / (1 + math.exp(z))
    return -z + math.log1p(math.exp(z)), -weight, weight


PLAIN_PAIRS: dict[str, Callable[[float, float], tuple[float, float, float]]] = {
    "square": square,
    "squared_hinge": squared_hinge,
    "logistic": logistic,
}
"""l, dl/du and dl/dv."""


def over_pairs(
    loss: str, f: Sequence[float], positive: Sequence[bool], weights: Sequence[float]
) -> tuple[float, np.ndarray]:
    """The weighted mean of l over all pairs of a positive and a negative row; its gradient in f."""
    total, value, gradient = 0.0, 0.0, np.zeros(len(f))
    for i, is_positive in enumerate(positive):
        for j, is_too in enumerate(positive):
            if not is_positive or is_too:
                continue
            weight = weights[i] * weights[j]
            part, first, second = PLAIN_PAIRS[loss](float(f[i]), float(f[j]))
            total += weight
            value += weight * part
            gradient[i] += weight * first
            gradient[j] += weight * second
    return value / total, gradient / total


def bend_over_pairs(
    f: Sequence[float],
    direction: Sequence[float],
    positive: Sequence[bool],
    weights: Sequence[float],
    bend: Callable[[float], float],
) -> float:
    """The second derivative of that mean along ``direction``."""
    total = value = 0.0
    for i, is_positive in enumerate(positive):
        for j, is_too in enumerate(positive):
            if not is_positive or is_too:
                continue
            weight = weights[i] * weights[j]
            total += weight
            value += weight * bend(float(f[i] - f[j])) * (direction[i] - direction[j]) ** 2
    return value / total


def auc(f: Sequence[float], positive: Sequence[bool]) -> float:
    """AVFKAM eq. (1); a tie counts half."""
    wins = pairs = 0.0
    for u, is_positive in zip(f, positive, strict=True):
        for v, is_too in zip(f, positive, strict=True):
            if is_positive and not is_too:
                pairs += 1
                wins += 1.0 if u > v else 0.5 if u == v else 0.0
    return wins / pairs
