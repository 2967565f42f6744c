"""Kernels of two rows, from the rows themselves: one entry at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np


def linear(X: np.ndarray, Z: np.ndarray) -> list[list[int]]:
    """Inner products in Python's own integers."""
    return [[sum(int(a) * int(b) for a, b in zip(x, z, strict=True)) for z in Z] for x in X]


def rbf(x: Sequence[float], z: Sequence[float], gamma: float) -> float:
    return math.exp(-gamma * math.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


def polynomial(
    x: Sequence[float], z: Sequence[float], degree: int, gamma: float, constant: float
) -> float:
    return float((gamma * math.fsum(a * b for a, b in zip(x, z, strict=True)) + constant) ** degree)


def dot_product_polynomial(x: Sequence[float], z: Sequence[float], a: Sequence[float]) -> float:
    inner = math.fsum(p * q for p, q in zip(x, z, strict=True))
    return math.fsum(c * inner**d for d, c in enumerate(a))


def conjunctive(x: Sequence[int], z: Sequence[int], degree: int) -> int:
    """Sets of variables all of which are true in x, and all of which are true in z."""
    return sum(
        all(x[i] for i in chosen) and all(z[i] for i in chosen)
        for chosen in combinations(range(len(x)), degree)
    )


def disjunctive(x: Sequence[int], z: Sequence[int], degree: int) -> int:
    """Sets of variables one of which is true in x, and one of which is true in z."""
    return sum(
        any(x[i] for i in chosen) and any(z[i] for i in chosen)
        for chosen in combinations(range(len(x)), degree)
    )
