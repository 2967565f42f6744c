"""Exact kernels by their closed forms, one pair of rows at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def euclidean(x: Sequence[float], z: Sequence[float]) -> float:
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


def gaussian(x: Sequence[float], z: Sequence[float], bandwidth: float) -> float:
    return math.exp(-(euclidean(x, z) ** 2) / (2 * bandwidth**2))


def laplace(x: Sequence[float], z: Sequence[float], bandwidth: float) -> float:
    return math.exp(-math.fsum(abs(a - b) for a, b in zip(x, z, strict=True)) / bandwidth)


def matern12(x: Sequence[float], z: Sequence[float], bandwidth: float) -> float:
    return math.exp(-euclidean(x, z) / bandwidth)


def matern32(x: Sequence[float], z: Sequence[float], bandwidth: float) -> float:
    r = math.sqrt(3) * euclidean(x, z) / bandwidth
    return (1 + r) * math.exp(-r)


def matern52(x: Sequence[float], z: Sequence[float], bandwidth: float) -> float:
    r = math.sqrt(5) * euclidean(x, z) / bandwidth
    return (1 + r + r**2 / 3) * math.exp(-r)


def odd_gaussian(x: Sequence[float], z: Sequence[float], bandwidth: float) -> float:
    """The mean of 2·sin(ωᵀx)·sin(ωᵀz); for wide bandwidths 2·x·z/σ²."""
    return gaussian(x, z, bandwidth) - gaussian(x, [-one for one in z], bandwidth)


EXACT: dict[str, Callable[[Sequence[float], Sequence[float], float], float]] = {
    "gaussian": gaussian,
    "laplace": laplace,
    "matern": matern32,
    "matern12": matern12,
    "matern32": matern32,
    "matern52": matern52,
    "linear": odd_gaussian,
}


def exact_kernel(name: str, X: Any, Z: Any, bandwidth: float) -> np.ndarray:
    """K (rows of X, rows of Z)."""
    return np.array([[EXACT[name](x, z, bandwidth) for z in Z.tolist()] for x in X.tolist()])


def mean_distance_of_all_pairs(name: str, X: Any) -> float:
    """The mean over all pairs of two different rows: absolute for Laplace, else squared."""
    distances = [
        math.fsum(abs(a - b) for a, b in zip(x, z, strict=True))
        if name == "laplace"
        else euclidean(x, z) ** 2
        for x, z in itertools.combinations(np.asarray(X).tolist(), 2)
    ]
    return math.fsum(distances) / len(distances)
