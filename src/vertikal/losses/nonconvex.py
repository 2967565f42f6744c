"""A smooth loss that is not convex, for which ADMM sharing is proved to converge all the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from vertikal.errors import InputError
from vertikal.losses.pointwise import LOSSES, Loss

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Sigmoid(Loss):
    """1/(1 + exp(yu)): nearly the number of errors, so rows that are far wrong stop mattering."""

    name = "sigmoid"
    curvature_bound = math.sqrt(3) / 18  # of |L''|, at expit(−yu) = 1/2 ± √3/6

    def value(self, u: Array, y: Array) -> Array:
        return np.asarray(expit(-y * u))

    def derivative(self, u: Array, y: Array) -> Array:
        p = expit(-y * u)
        return np.asarray(-y * p * (1 - p))

    def curvature(self, u: Array, y: Array) -> Array:
        p = expit(-y * u)
        return np.asarray(p * (1 - p) * (1 - 2 * p))

    def constant(self, share: float) -> float:
        # Constants run away to the side of the larger class; zero is a start, not a minimum.
        return 0.0


SMOOTH_LOSSES: Mapping[str, Loss] = {**LOSSES, "sigmoid": Sigmoid()}
"""All losses that ADMM sharing takes: the convex ones and the one that is not."""

NOT_CONVEX = frozenset({"sigmoid"})


def smooth_loss_named(name: object, *, regression: bool) -> Loss:
    """The loss of this name, if it fits the task."""
    allowed = [key for key, loss in SMOOTH_LOSSES.items() if loss.regression or not regression]
    if isinstance(name, str) and name in allowed:
        return SMOOTH_LOSSES[name]
    raise InputError.of("loss", f"one of {allowed}", name)
