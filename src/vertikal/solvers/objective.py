"""The regularised problem on the drawn features, apart from Φ itself.

    minimise over α   R(c + Φα) + λ/2 ‖α‖²,   R(f) = (1/W) Σ_i w_i L(f_i, y_i), or over pairs.

`vertikal.solvers.lbfgs` minimises any `Objective`; `RowObjective` is the mean loss over rows,
`vertikal.solvers.pair_objective` has the mean loss over pairs of rows. Several outputs (one against
the rest) are separate problems.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.losses.pointwise import Loss

Array = npt.NDArray[Any]


class Objective(ABC):
    """A convex function R of the predictions f, plus λ/2 ‖α‖²."""

    penalty: float  # λ

    @abstractmethod
    def start(self) -> Array:
        """f at α = 0, (rows, outputs). The solver adds to it; the penalty leaves it alone."""

    def resume(self, predictions: Array) -> Array:
        """Return f of an earlier fit, (rows, outputs), for the solver to add to."""
        return predictions.copy()

    @abstractmethod
    def value(self, f: Array) -> Array:
        """R(f), one number per output (outputs,)."""

    @abstractmethod
    def residuals(self, f: Array) -> Array:
        """∂R/∂f, (rows, outputs)."""

    @abstractmethod
    def along(self, f: Array, direction: Array) -> tuple[Array, Array]:
        """First and second derivative of R at f along ``direction``, each (outputs,)."""

    @abstractmethod
    def shares(self) -> Array:
        """Weight of each row in the Hessian, (rows,); they sum to about 1."""

    @abstractmethod
    def stiffness(self) -> float:
        """κ, a typical second derivative: κ·ΦᵀSΦ, S the shares, is about the Hessian of R."""


@dataclass(frozen=True)
class RowObjective(Objective):
    """R = (1/W) Σ_i w_i L(c + (Φα)_i, y_i), a mean over rows."""

    targets: Array  # (rows, outputs); ±1 for classification
    weights: Array  # (rows,)
    loss: Loss
    penalty: float  # λ
    constant: Array  # (outputs,), added to every prediction and not penalised

    @property
    def mass(self) -> float:
        """W, the sum of the weights."""
        return float(self.weights.sum())

    def start(self) -> Array:
        return np.broadcast_to(self.constant, self.targets.shape).copy()

    def value(self, f: Array) -> Array:
        return np.asarray(self.shares() @ self.loss.value(f, self.targets))

    def residuals(self, f: Array) -> Array:
        return np.asarray(self.shares()[:, None] * self.loss.derivative(f, self.targets))

    def along(self, f: Array, direction: Array) -> tuple[Array, Array]:
        shares = self.shares()[:, None]
        bend = shares * self.loss.curvature(f, self.targets)
        first = column_products(self.residuals(f), direction)
        return first, column_products(bend, np.square(direction))

    def shares(self) -> Array:
        return np.asarray(self.weights / self.mass)

    def stiffness(self) -> float:
        mean = float(np.mean(self.shares() @ self.loss.curvature(self.start(), self.targets)))
        return max(mean, 0.01 * self.loss.curvature_bound)


def automatic_penalty(weights: Array) -> float:
    """λ where nobody gave one: 0.1 over the (weighted) number of rows, `SVC`'s C = 10."""
    return 0.1 / float(weights.sum())


def best_constants(loss: Loss, targets: Array, weights: Array) -> Array:
    """The best constant prediction of each output (outputs,), from which the solver starts."""
    return constants_of(loss, weights @ (targets > 0) / weights.sum())


def constants_of(loss: Loss, shares: Array) -> Array:
    """The best constant prediction of each output (outputs,), by the share of positive rows."""
    return np.array([loss.constant(float(np.clip(p, 1e-6, 1 - 1e-6))) for p in shares])


def column_products(a: Array, b: Array) -> Array:
    """Inner products column by column: (rows, outputs) twice → (outputs,)."""
    return np.asarray(np.einsum("ij,ij->j", a, b))
