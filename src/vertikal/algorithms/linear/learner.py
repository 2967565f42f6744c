"""The weights of one party's columns while they are learned, and the updates of the baselines.

The loops know a `Learner`: it draws rows, has its partial prediction of them, and changes its own
weights by the joint prediction. A kernel machine shrinks all old coefficients at every step of
anybody; here a party's step has the gradient of its own penalty, and others' steps change nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.fdskl import RowUpdate
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.kernel_machine.stochastic.learner import Learner
from vertikal.algorithms.linear.settings import LinearSettings
from vertikal.compute.matrix_operator import MatrixOperator
from vertikal.losses.pointwise import loss_named
from vertikal.party.party import Labels
from vertikal.secure.keys.prg import derive_key
from vertikal.solvers.feature_operator import FeatureOperator

Array = npt.NDArray[Any]

_CURVED = 1e-10
"""Least curvature of a pair that a quasi-Newton direction is made of."""


class LinearLearner(Learner):
    """Weights of one party's columns, changed by the rule of the method."""

    def __init__(
        self, settings: LinearSettings, shard: Shard, operator: MatrixOperator, labels: Labels
    ) -> None:
        loss = loss_named(settings.loss, regression=settings.regression)
        self.row_rule = RowUpdate(shard.settings, labels, loss)
        super().__init__(shard, operator, self.row_rule, settings.alpha)
        self._linear = settings
        self._loss, self._labels = loss, labels
        self._updates = 0
        self._pairs: list[tuple[Array, Array]] = []
        self._last = self.coefficients()
        # The batches of FD-SVRG are everybody's.
        public = settings.seed.to_bytes(32, "big")
        self._batches = public if settings.method == "fd-svrg" else shard.seed
        self._picked = 0
        self._snapshot: tuple[Array, Array, Array] | None = None

    @property
    def made(self) -> int:
        """Updates that this party has made in all epochs."""
        return self._updates

    def pick(self) -> Array:
        key = derive_key(self._batches, "batches", str(self._picked))
        self._picked += 1
        return self.row_rule.draw(key)

    def decay(self, times: int = 1) -> None:
        """Leave the weights as they are: the penalty is in the gradient."""

    def add(self, columns: slice, change: Array) -> None:
        super().add(slice(None), change)

    def take_snapshot(self, f: Array) -> None:
        """Keep w̃, f of all rows at w̃ (rows, 1), and the gradient of the whole objective there."""
        w = self.coefficients()
        everybody = np.arange(self.operator.rows)
        full = self.operator.adjoint(self.row_rule.slopes(f, everybody)) + self.penalty * w
        self._snapshot = w, f, full

    def change(self, batch: FeatureOperator, rows: Array, f: Array, columns: slice) -> Array:
        """Return the step of this party's weights by the rule of the method."""
        w = self.coefficients()
        gradient = self._gradient(batch, rows, f, w)
        if self._snapshot is not None:
            before, whole, full = self._snapshot
            # SVRG: ∇_i(w) − ∇_i(w̃) + ∇(w̃).
            gradient = gradient - self._gradient(batch, rows, whole[rows], before) + full
        step = self.step_size
        self._updates += 1
        if self._linear.method == "fdml":
            step /= math.sqrt(self._updates)
        if self._linear.method == "asysqn":
            self._remember(batch, rows, f, w)
            gradient = two_loops(gradient, self._pairs)
        self.trace.append(self.rule.mean_loss(f, rows))
        return np.asarray(-step * gradient)

    def _gradient(self, batch: FeatureOperator, rows: Array, f: Array, w: Array) -> Array:
        return batch.adjoint(self.row_rule.slopes(f, rows)) + self.penalty * w

    def _remember(self, batch: FeatureOperator, rows: Array, f: Array, w: Array) -> None:
        """Keep a step of this block with the change of its gradient along it, on this batch."""
        moved = w - self._last
        self._last = w
        bend = self._loss.curvature(f, self._labels.targets[rows]) / len(rows)
        turned = batch.adjoint(bend * batch.forward(moved)) + self.penalty * moved
        if float((moved * turned).sum()) > _CURVED * float((moved * moved).sum()) > 0:
            self._pairs.append((moved, turned))
            del self._pairs[: -self._linear.memory]


def two_loops(gradient: Array, pairs: list[tuple[Array, Array]]) -> Array:
    """Return H·gradient by the two loops of L-BFGS over pairs (step, change of the gradient)."""
    q = gradient.copy()
    back = []
    for s, y in reversed(pairs):
        a = float((s * q).sum()) / float((s * y).sum())
        back.append(a)
        q -= a * y
    if pairs:
        s, y = pairs[-1]
        q *= float((s * y).sum()) / float((y * y).sum())
    for (s, y), a in zip(pairs, reversed(back), strict=True):
        q += s * (a - float((y * q).sum()) / float((s * y).sum()))
    return q
