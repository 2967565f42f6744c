"""The two halves of VAFL's network: a layer at each party, and a head at the label party.

Pure functions of arrays. A party's embedding is h_ℓ = tanh(x_ℓ W_ℓ + b_ℓ); the head puts all of
them side by side, f = tanh(h V + c)·u + d. Slopes are those of the mean loss of a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.secure.keys.prg import derive_key, uniform_reals

Array = npt.NDArray[Any]


@dataclass
class Layer:
    """h = tanh(x W + b), changed in place by gradient steps."""

    weights: Array  # W (inputs, outputs)
    offsets: Array  # b (outputs,)

    @classmethod
    def drawn(cls, key: bytes, inputs: int, outputs: int) -> Layer:
        """Draw W uniformly within ±√(6 / (inputs + outputs)) by the stream cipher; b is zero.

        Whoever knew W could solve an embedding for the columns, so that it is as secret as ``key``.
        """
        bound = math.sqrt(6 / (inputs + outputs))
        return cls(bound * (2 * uniform_reals(key, (inputs, outputs)) - 1), np.zeros(outputs))

    def forward(self, x: Any) -> Array:
        """Return h (rows, outputs) of x (rows, inputs), which may be sparse."""
        return np.asarray(np.tanh(x @ self.weights + self.offsets))

    def step(self, x: Any, h: Array, slopes: Array, step_size: float, penalty: float) -> Array:
        """Step against the gradient, given the slopes at h; return those at x W + b."""
        inner = slopes * (1 - h * h)
        self.weights -= step_size * (np.asarray(x.T @ inner) + penalty * self.weights)
        self.offsets -= step_size * inner.sum(axis=0)
        return np.asarray(inner)


@dataclass
class NetworkHead:
    """f = tanh(h V + c)·u + d of all parties' embeddings h (rows, parties · embedding)."""

    layer: Layer  # V, c
    output: Array  # u (hidden, 1)
    constant: float  # d

    @classmethod
    def drawn(cls, key: bytes, inputs: int, hidden: int) -> NetworkHead:
        bound = math.sqrt(6 / (hidden + 1))
        output = bound * (2 * uniform_reals(derive_key(key, "output"), (hidden, 1)) - 1)
        return cls(Layer.drawn(key, inputs, hidden), output, 0.0)

    def forward(self, h: Array) -> Array:
        """Return f (rows, 1)."""
        return self._output(self.layer.forward(h))

    def step(self, h: Array, slopes_of: Any, step_size: float, penalty: float) -> Array:
        """Step against the gradient; return the slopes at h, as they were before the step.

        ``slopes_of`` gives the loss's slope at each f (rows, 1), over the rows of the batch.
        """
        hidden = self.layer.forward(h)
        slopes = slopes_of(self._output(hidden))
        below = slopes @ self.output.T
        weights = self.layer.weights.copy()
        self.output -= step_size * (hidden.T @ slopes + penalty * self.output)
        self.constant -= step_size * float(slopes.sum())
        inner = self.layer.step(h, hidden, below, step_size, penalty)
        return np.asarray(inner @ weights.T)

    def _output(self, hidden: Array) -> Array:
        return np.asarray(hidden @ self.output + self.constant)
