"""Separable regularisers R(x) of ADMM sharing, each by its value and its proximal step.

``exempt`` coordinates (an intercept) are not penalised: callers pass a mask of those that are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Regulariser:
    """λ·R(x), R(x) = ratio·‖x‖₁ + (1 − ratio)/2·‖x‖².

    ``l2`` is ratio 0, ``l1`` ratio 1; the elastic net lies between. Convex, so every party of a
    job is in the set that the paper calls 𝓜.
    """

    penalty: float  # λ
    ratio: float  # of the l1 part

    @property
    def quadratic(self) -> float:
        """The weight of ‖x‖²/2."""
        return self.penalty * (1 - self.ratio)

    @property
    def absolute(self) -> float:
        """The weight of ‖x‖₁."""
        return self.penalty * self.ratio

    def value(self, x: Array, penalised: Array) -> float:
        """λR(x) over the penalised coordinates (a mask (d,)) of x (d, outputs)."""
        kept = x[penalised]
        return float(
            self.absolute * np.abs(kept).sum() + self.quadratic / 2 * np.square(kept).sum()
        )

    def prox(self, x: Array, penalised: Array, step: float = 1.0) -> Array:
        """argmin over v of step·λR(v) + ½‖v − x‖²: shrink towards zero, then scale."""
        shrunk = np.sign(x) * np.maximum(np.abs(x) - step * self.absolute, 0.0)
        return np.where(penalised[:, None], shrunk / (1 + step * self.quadratic), x)
