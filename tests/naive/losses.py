"""FDSKL Table 1 and the sigmoid loss, one number at a time: value and derivative in u."""

from __future__ import annotations

import math
from collections.abc import Callable


def square(u: float, y: float) -> tuple[float, float]:
    return (u - y) ** 2, 2 * (u - y)


def logistic(u: float, y: float) -> tuple[float, float]:
    z = y * u
    if z >= 0:
        return math.log1p(math.exp(-z)), -y * math.exp(-z) / (1 + math.exp(-z))
    return -z + math.log1p(math.exp(z)), -y / (1 + math.exp(z))


def smooth_hinge(u: float, y: float) -> tuple[float, float]:
    z = y * u
    if z <= 0:
        return 0.5 - z, -y
    if z < 1:
        return 0.5 * (1 - z) ** 2, -y * (1 - z)
    return 0.0, 0.0


def sigmoid(u: float, y: float) -> tuple[float, float]:
    value = 1 / (1 + math.exp(y * u))
    return value, -y * value * (1 - value)


PLAIN: dict[str, Callable[[float, float], tuple[float, float]]] = {
    "square": square,
    "logistic": logistic,
    "smooth_hinge": smooth_hinge,
    "sigmoid": sigmoid,
}
