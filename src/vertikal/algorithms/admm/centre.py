"""The central node of ADMM sharing: auxiliary variable z, dual variable y, and when to stop.

Rows count by their weights, in the loss as in the norms of the augmented Lagrangian, ADMM eq. (5):

    Σ_i w_i L(z_i) + λΣR_m(x_m) + Σ_i w_i [y_i(s_i − z_i) + ρ/2 (s_i − z_i)²],   s = Σ D_m x_m.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.admm.settings import AdmmSettings
from vertikal.algorithms.admm.shard import Round
from vertikal.errors import InputError
from vertikal.losses.nonconvex import smooth_loss_named
from vertikal.party.party import Labels
from vertikal.solvers.loss_prox import loss_prox

Array = npt.NDArray[Any]

_PATIENCE = 10
"""Rounds before a rising objective counts as divergence."""
_DIVERGED = 3.0
"""Factor over the objective of the zero model from which on a run has diverged."""


class CentralNode:
    """State of the central node: z and y, zero at first, and a record of the rounds."""

    def __init__(self, labels: Labels, settings: AdmmSettings, rho: float) -> None:
        self._targets = labels.targets
        self._weights = labels.weights[:, None]
        self._settings, self._rho = settings, rho
        self._loss = smooth_loss_named(settings.loss, regression=settings.regression)
        self.z = np.zeros_like(self._targets)
        self.y = np.zeros_like(self._targets)
        self._gap = np.zeros_like(self._targets)  # s − z
        self.rounds: list[Round] = []
        self.converged = False
        self._first = self._mean_loss(self.z)

    def step(self, total: Array, scalars: Array | None) -> Array:
        """Update z by ADMM eq. (7) and y by ADMM eq. (8), and return y + ρ(s − z).

        Parties need no more than that. ``total`` is s. ``scalars`` are Σ λR_m(x_m), and
        Σ‖∇̃_{x_m}‖² of the round before. They are None where noise would have to protect them;
        training then neither stops early nor notices that it diverges.
        """
        lyapunov = math.nan if scalars is None or not self.rounds else self._lyapunov(scalars[1])
        before, rho = self.z, self._rho
        ones = np.ones_like(total)  # a row's weight is on both sides of (7) and drops out
        self.z = loss_prox(self._loss, total + self.y / rho, self._targets, ones, rho, before)
        self._gap = total - self.z
        self.y = self.y + rho * self._gap
        primal, dual = self._norm(self._gap), rho * self._norm(self.z - before)
        objective = math.nan
        if scalars is not None:
            objective = self._mean_loss(total) + float(scalars[0]) / float(self._weights.sum())
            self._check_divergence(objective)
        self.rounds.append(Round(primal, dual, lyapunov, objective))
        size = max(self._norm(total), self._norm(self.z))
        self.converged = scalars is not None and self._stationary(size)
        return np.asarray(self.y + rho * self._gap)

    def begin(self) -> Array:
        """Take the step for contributions of zero, as they are at first; it counts as no round."""
        shared = self.step(np.zeros_like(self._targets), None)
        self.rounds.clear()
        return shared

    def note(self) -> str:
        """Describe the last round in a few words."""
        last = self.rounds[-1]
        if math.isnan(last.objective):
            return f"residual {last.primal:.4g}"
        return f"objective {last.objective:.6f}"

    def _lyapunov(self, gradients: float) -> float:
        """ADMM eq. (13): V^t, the squared gradients of (5) in all x_m and in z, and ‖s − z‖².

        It is known one round later, when every party has sent its part.
        """
        slope = self._loss.derivative(self.z, self._targets) - self.y - self._rho * self._gap
        return float(gradients) + self._norm(slope) ** 2 + self._norm(self._gap) ** 2

    def _stationary(self, size: float) -> bool:
        """Return True if primal residual, dual residual and V^t are below the tolerance."""
        if len(self.rounds) < 3:
            return False
        last, tolerance = self.rounds[-1], self._settings.tol
        return (
            last.primal <= tolerance * max(size, 1e-300)
            and last.dual <= tolerance * max(self._norm(self.y), 1e-300)
            and last.lyapunov <= tolerance * self.rounds[1].lyapunov
        )

    def _check_divergence(self, objective: float) -> None:
        if math.isfinite(objective) and (
            len(self.rounds) < _PATIENCE or objective <= _DIVERGED * self._first
        ):
            return
        raise InputError.of(
            "rho",
            "larger, or averaging=True: the rounds diverge (objective "
            f"{objective:.4g} after {len(self.rounds) + 1} rounds, {self._first:.4g} before)",
            self._rho,
        )

    def _mean_loss(self, predictions: Array) -> float:
        values = self._weights * self._loss.value(predictions, self._targets)
        return float(values.sum() / self._weights.sum())

    def _norm(self, values: Array) -> float:
        return float(np.sqrt((self._weights * np.square(values)).sum()))
