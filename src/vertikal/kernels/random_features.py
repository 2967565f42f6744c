"""Random Fourier features in a ring (FDSKL eq. (3)).

φ_j(x) = √(2/D)·cos(ω_jᵀx + b_j), where ω_jᵀx + b_j = Σ_ℓ (ω_jᵀx)_ℓ + b_jℓ over the parties. A party
holds only its own coordinates of ω and its own b_ℓ, and writes its term as round(· 2^k/2π) mod 2^k.

One phase θ gives more than its cosine. With its sine, √(1/D)·(cos θ, sin θ), D phases are 2D
features, whose inner products are the mean of cos(θ(x) − θ(z)): half the variance and no dependence
on b. The features of hθ, h a whole number, are those of the direction hω, of bandwidth σ/h; in the
ring hθ is a product of elements, which wraps exactly. Features of several h side by side, each over
√H, make the mean of the H kernels. Rounding of θ grows h-fold in hθ.

    harmonics (1, 2), pair:   cos θ_1…θ_D   sin θ_1…θ_D   cos 2θ_1…2θ_D   sin 2θ_1…2θ_D
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.kernels.feature_map import Array, Block, FeatureMap
from vertikal.kernels.phase_loops import LOOPS, Loops
from vertikal.reused_memory import aligned, reused_memory
from vertikal.ring.integers import LIMIT, Ring, check_steps

_TILE = 1 << 18
_DENSE_ENOUGH = 0.05
_CHUNK = 512


def project(block: Block, directions: Array) -> Array:
    """Multiply rows by directions; sparse rows that are nearly full are made dense first."""
    # The size of a sparse block is the number of its entries, not of its cells.
    if sparse.issparse(block) and block.nnz > _DENSE_ENOUGH * math.prod(block.shape):
        block = block.toarray()
    return np.asarray(block @ directions)


class FourierMap(FeatureMap):
    """One block of random Fourier features, as one party sees it.

    ``directions`` (columns, elements) are this party's coordinates of ω, already divided by the
    bandwidth; ``offsets`` (elements,) its b_ℓ in ring steps; ``total`` is D, the directions of all
    blocks together. ``functions`` says whether a phase gives its cosine or also its sine, and
    ``harmonics`` at which multiples of it. `steps`, `offsets`, `norm`, `pair` and `harmonics` are
    for whoever computes the same elsewhere.
    """

    def __init__(
        self,
        ring: Ring,
        directions: Array,
        offsets: Array,
        total: int,
        *,
        centre: Array | None = None,
        functions: Literal["cosine", "pair"] = "cosine",
        harmonics: tuple[int, ...] = (1,),
        loops: Loops = LOOPS,
    ) -> None:
        self.ring = ring
        self._elements = int(directions.shape[1])
        self.pair, self.harmonics = functions == "pair", harmonics
        self._per_phase = (2 if self.pair else 1) * len(harmonics)
        self.width = self._elements * self._per_phase
        self.steps = aligned(directions * ring.steps)
        shift = 0.0 if centre is None else centre @ self.steps
        # A column's centre moves every phase of a direction alike; folded in here, centred columns
        # need never be written down, and sparse ones stay sparse. Reduced, to keep its precision.
        self.offsets = aligned(np.mod(offsets.astype(np.float64) - shift, 2.0**ring.bits))
        self.norm = math.sqrt((1 if self.pair else 2) / (total * len(harmonics)))
        self._loops = loops
        turn = Ring(8).decode_angles(np.arange(256))
        self._tables = np.cos(turn) * self.norm, np.sin(turn) * self.norm

    @property
    def elements(self) -> int:
        return self._elements

    def local(self, block: Block, out: Array | None = None) -> Array:
        shape = (block.shape[0], self._elements)
        phases = reused_memory.empty(shape, self.ring.dtype) if out is None else out
        self._write(block, phases, added=False)
        return phases

    def add_local(self, block: Block, out: Array) -> None:
        self._write(block, out, added=True)

    def _write(self, block: Block, out: Array, *, added: bool) -> None:
        loops, offsets = self._loops, self.offsets
        within = loops.project(block, self.steps, offsets, out, added=added)
        if within is None:
            height = max(16, _TILE // max(1, self._elements))
            spans = [slice(i, i + height) for i in range(0, len(out), height)]
            within = all(
                loops.wrap(project(block[rows], self.steps), offsets, out[rows], added=added)
                for rows in spans
            )
        if not within:
            steps = project(block, self.steps) + self.offsets
            check_steps(float(steps.min()), float(steps.max()))
            check_steps(-LIMIT, LIMIT)

    def decode(self, total: Array, dtype: npt.DTypeLike = np.float32) -> Array:
        if np.dtype(dtype) == np.float64:
            return self._decode_precisely(total)
        shape = (len(total), total.shape[1] * self._per_phase)
        features = reused_memory.empty(shape, np.float32)
        for phases, where in self._turned(total):
            if self.pair:
                self._loops.decode_pair(phases, features, where.start)
            elif len(self.harmonics) == 1:
                self._loops.decode(phases, features)
            else:
                cosines = np.empty(phases.shape, np.float32)
                self._loops.decode(phases, cosines)
                features[:, where] = cosines
        features *= np.float32(self.norm)
        return features

    def _decode_precisely(self, total: Array) -> Array:
        parts = []
        for phases, _ in self._turned(total):
            if self.ring.bits == 8:
                parts.append(np.take(self._tables[0], phases))
                if self.pair:
                    parts.append(np.take(self._tables[1], phases))
            else:
                angles = self.ring.decode_angles(phases)
                parts.append(np.cos(angles) * self.norm)
                if self.pair:
                    parts.append(np.sin(angles) * self.norm)
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def forward(self, total: Array, coefficients: Array) -> Array:
        if coefficients.shape[1] > 1:
            return super().forward(total, coefficients)
        weights = np.ascontiguousarray(coefficients[:, 0] * self.norm, np.float32)
        multiply = self._loops.forward_pair if self.pair else self._loops.forward
        values = np.zeros(len(total), np.float32)
        for phases, where in self._turned(total):
            part = np.empty(len(total), np.float32)
            multiply(phases, weights[where], part)
            values += part
        return values[:, None]

    def adjoint(self, total: Array, residuals: Array) -> Array:
        if residuals.shape[1] > 1:
            return super().adjoint(total, residuals)
        weights = np.ascontiguousarray(residuals[:, 0], np.float32)
        multiply = self._loops.adjoint_pair if self.pair else self._loops.adjoint
        gathered: npt.NDArray[Any] = np.zeros(total.shape[1] * self._per_phase)
        # Single-precision sums are kept short, or rounding would add up over many rows.
        for start in range(0, len(total), _CHUNK):
            rows = slice(start, start + _CHUNK)
            for phases, where in self._turned(total[rows]):
                part = np.zeros(where.stop - where.start, np.float32)
                multiply(phases, weights[rows], part)
                gathered[where] += part
        return (gathered * self.norm)[:, None]

    def _turned(self, total: Array) -> Iterator[tuple[Array, slice]]:
        """Yield hθ for each harmonic h, and the columns of its features."""
        total = np.ascontiguousarray(total)
        width = total.shape[1] * (2 if self.pair else 1)
        for place, harmonic in enumerate(self.harmonics):
            phases = total if harmonic == 1 else total * total.dtype.type(harmonic)
            yield phases, slice(place * width, (place + 1) * width)
