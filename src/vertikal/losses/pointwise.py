"""FDSKL Table 1: the smooth losses L(u, y) of one prediction u and one target y.

For classification y is −1 or +1. All methods work elementwise on arrays of one shape.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from vertikal.errors import InputError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Loss(ABC):
    """A convex, smooth loss."""

    name: ClassVar[str]
    curvature_bound: ClassVar[float]
    """The largest second derivative."""
    regression: ClassVar[bool] = False

    @abstractmethod
    def value(self, u: Array, y: Array) -> Array:
        """L(u, y)."""

    @abstractmethod
    def derivative(self, u: Array, y: Array) -> Array:
        """L'(u, y), with respect to u."""

    @abstractmethod
    def curvature(self, u: Array, y: Array) -> Array:
        """L''(u, y); where the loss has a kink in L', one of the two sides."""

    @abstractmethod
    def constant(self, share: float) -> float:
        """The constant u that is best where a ``share`` of the targets is +1 and the rest −1."""

    def probability(self, u: Array) -> Array | None:
        """The probability of +1 at prediction u; None if the loss does not estimate it."""
        return None


@dataclass(frozen=True)
class Square(Loss):
    """(u − y)²."""

    name = "square"
    curvature_bound = 2.0
    regression = True

    def value(self, u: Array, y: Array) -> Array:
        return np.asarray(np.square(u - y))

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(2 * (u - y))

    def curvature(self, u: Array, y: Array) -> Array:
        return np.full_like(u, 2.0)

    def constant(self, share: float) -> float:
        return 2 * share - 1

    def probability(self, u: Array) -> Array:
        return np.clip((1 + u) / 2, 0, 1)


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(−yu))."""

    name = "logistic"
    curvature_bound = 0.25

    def value(self, u: Array, y: Array) -> Array:
        return np.asarray(np.logaddexp(0, -y * u))

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(-y * expit(-y * u))

    def curvature(self, u: Array, y: Array) -> Array:
        p = expit(u)
        return np.asarray(p * (1 - p))

    def constant(self, share: float) -> float:
        return float(np.log(share) - np.log1p(-share))

    def probability(self, u: Array) -> Array:
        return np.asarray(expit(u))


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """With z = yu: 1/2 − z for z ≤ 0, (1 − z)²/2 for 0 < z < 1, 0 for z ≥ 1."""

    name = "smooth_hinge"
    curvature_bound = 1.0

    def value(self, u: Array, y: Array) -> Array:
        z = y * u
        return np.where(z <= 0, 0.5 - z, 0.5 * np.square(np.maximum(0, 1 - z)))

    def derivative(self, u: Array, y: Array) -> Array:
        return np.asarray(-y * np.clip(1 - y * u, 0, 1))

    def curvature(self, u: Array, y: Array) -> Array:
        z = y * u
        return np.where((z > 0) & (z < 1), 1.0, 0.0)

    def constant(self, share: float) -> float:
        # share·L'(c, +1) + (1 − share)·L'(c, −1) = 0, for c within ±1.
        return float(np.clip((2 * share - 1) / max(share, 1 - share), -1, 1))


LOSSES: Mapping[str, Loss] = {loss.name: loss for loss in (Square(), Logistic(), SmoothHinge())}


def loss_named(name: object, *, regression: bool) -> Loss:
    """The loss of this name, if it fits the task."""
    allowed = [key for key, loss in LOSSES.items() if loss.regression or not regression]
    if isinstance(name, str) and name in allowed:
        return LOSSES[name]
    raise InputError.of("loss", f"one of {allowed}", name)
