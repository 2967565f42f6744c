"""Random Fourier features in a ring (FDSKL eq. (3)).

φ_j(x) = √(2/D)·cos(ω_jᵀx + b_j), where ω_jᵀx + b_j = Σ_ℓ (ω_jᵀx)_ℓ + b_jℓ over the parties. A party
holds only its own coordinates of ω and its own b_ℓ, and writes its term as round(· 2^k/2π) mod 2^k.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.kernels.feature_map import Array, Block, FeatureMap
from vertikal.kernels.phase_loops import LOOPS, Loops
from vertikal.ring.integers import LIMIT, Ring, check_steps

_TILE = 1 << 18
_DENSE_ENOUGH = 0.05
_CHUNK = 512


class FourierMap(FeatureMap):
    """One block of random Fourier features, as one party sees it.

    ``directions`` (columns, width) are this party's coordinates of ω, already divided by the
    bandwidth; ``offsets`` (width,) its b_ℓ in ring steps; ``total`` is D, the features of all
    blocks together.
    """

    def __init__(
        self,
        ring: Ring,
        directions: Array,
        offsets: Array,
        total: int,
        *,
        centre: Array | None = None,
        loops: Loops = LOOPS,
    ) -> None:
        self.ring = ring
        self.width = directions.shape[1]
        self._steps = np.ascontiguousarray(directions * ring.steps)
        shift = 0.0 if centre is None else centre @ self._steps
        # A column's centre moves every phase of a direction alike; folded in here, centred columns
        # need never be written down, and sparse ones stay sparse. Reduced, to keep its precision.
        self._offsets = np.mod(offsets.astype(np.float64) - shift, 2.0**ring.bits)
        self._norm = math.sqrt(2 / total)
        self._loops = loops
        self._table = np.cos(Ring(8).decode_angles(np.arange(256))) * self._norm

    def local(self, block: Block, out: Array | None = None) -> Array:
        phases = np.empty((block.shape[0], self.width), self.ring.dtype) if out is None else out
        within = self._loops.project(block, self._steps, self._offsets, phases)
        if within is None:
            height = max(16, _TILE // max(1, self.width))
            spans = [slice(i, i + height) for i in range(0, len(phases), height)]
            within = all(
                self._loops.wrap(self._project(block[rows]), self._offsets, phases[rows])
                for rows in spans
            )
        if not within:
            steps = self._project(block) + self._offsets
            check_steps(float(steps.min()), float(steps.max()))
            check_steps(-LIMIT, LIMIT)
        return phases

    def _project(self, block: Block) -> Array:
        if sparse.issparse(block):
            if block.nnz <= _DENSE_ENOUGH * math.prod(block.shape):
                return np.asarray(block @ self._steps)
            block = block.toarray()
        return np.asarray(block @ self._steps)

    def decode(self, total: Array, dtype: npt.DTypeLike = np.float32) -> Array:
        if np.dtype(dtype) == np.float64:
            if self.ring.bits == 8:
                return np.take(self._table, total)
            return np.asarray(np.cos(self.ring.decode_angles(total)) * self._norm)
        features = np.empty(total.shape, np.float32)
        self._loops.decode(np.ascontiguousarray(total), features)
        features *= np.float32(self._norm)
        return features

    def forward(self, total: Array, coefficients: Array) -> Array:
        if coefficients.shape[1] > 1:
            return super().forward(total, coefficients)
        values = np.empty(len(total), np.float32)
        weights = np.ascontiguousarray(coefficients[:, 0] * self._norm, np.float32)
        self._loops.forward(np.ascontiguousarray(total), weights, values)
        return values[:, None]

    def adjoint(self, total: Array, residuals: Array) -> Array:
        if residuals.shape[1] > 1:
            return super().adjoint(total, residuals)
        total = np.ascontiguousarray(total)
        weights = np.ascontiguousarray(residuals[:, 0], np.float32)
        gathered: npt.NDArray[Any] = np.zeros(total.shape[1])
        # Single-precision sums are kept short, or rounding would add up over many rows.
        for start in range(0, len(total), _CHUNK):
            part = np.zeros(total.shape[1], np.float32)
            self._loops.adjoint(
                total[start : start + _CHUNK], weights[start : start + _CHUNK], part
            )
            gathered += part
        return (gathered * self._norm)[:, None]
