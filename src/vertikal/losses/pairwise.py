"""Pairwise losses l(u, v) of the predictions u of a positive row and v of a negative row.

The area under the ROC curve, AVFKAM eq. (1), is the share of such pairs with u > v. Each loss here
is a smooth, convex stand-in for the others: a function of the margin u − v alone. All methods work
elementwise on arrays of one shape.
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
class PairLoss(ABC):
    """A convex, smooth loss of the margin z = u − v."""

    name: ClassVar[str]
    curvature_bound: ClassVar[float]
    """The largest second derivative in z."""

    @abstractmethod
    def of_margin(self, z: Array) -> Array:
        """l as a function of z = u − v."""

    @abstractmethod
    def slope(self, z: Array) -> Array:
        """dl/dz."""

    @abstractmethod
    def bend(self, z: Array) -> Array:
        """d²l/dz²; where dl/dz has a kink, one of the two sides."""

    def value(self, u: Array, v: Array) -> Array:
        """l(u, v), the loss within AVFKAM eq. (2)."""
        return self.of_margin(u - v)

    def derivatives(self, u: Array, v: Array) -> tuple[Array, Array]:
        """l'₁ and l'₂ of AVFKAM eq. (3): with respect to u and to v.

        They multiply the kernel in AVFKAM eq. (4), and features in its place in AVFKAM eq. (5).
        """
        slope = self.slope(u - v)
        return slope, -slope


@dataclass(frozen=True)
class PairSquare(PairLoss):
    """(1 − z)²."""

    name = "square"
    curvature_bound = 2.0

    def of_margin(self, z: Array) -> Array:
        return np.asarray(np.square(1 - z))

    def slope(self, z: Array) -> Array:
        return np.asarray(-2 * (1 - z))

    def bend(self, z: Array) -> Array:
        return np.full_like(z, 2.0)


@dataclass(frozen=True)
class PairSquaredHinge(PairLoss):
    """max(0, 1 − z)²."""

    name = "squared_hinge"
    curvature_bound = 2.0

    def of_margin(self, z: Array) -> Array:
        return np.asarray(np.square(np.maximum(0.0, 1 - z)))

    def slope(self, z: Array) -> Array:
        return np.asarray(-2 * np.maximum(0.0, 1 - z))

    def bend(self, z: Array) -> Array:
        return np.where(z < 1, 2.0, 0.0)


@dataclass(frozen=True)
class PairLogistic(PairLoss):
    """log(1 + exp(−z)). The only one here whose derivatives are bounded, as the paper assumes."""

    name = "logistic"
    curvature_bound = 0.25

    def of_margin(self, z: Array) -> Array:
        return np.asarray(np.logaddexp(0, -z))

    def slope(self, z: Array) -> Array:
        return np.asarray(-expit(-z))

    def bend(self, z: Array) -> Array:
        p = expit(z)
        return np.asarray(p * (1 - p))


PAIR_LOSSES: Mapping[str, PairLoss] = {
    loss.name: loss for loss in (PairSquaredHinge(), PairSquare(), PairLogistic())
}


def pair_loss_named(name: object) -> PairLoss:
    """The pairwise loss of this name."""
    if isinstance(name, str) and name in PAIR_LOSSES:
        return PAIR_LOSSES[name]
    raise InputError.of("loss", f"one of {list(PAIR_LOSSES)}", name)
