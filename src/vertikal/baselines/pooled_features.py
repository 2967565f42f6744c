"""Random features of pooled columns: drawn once for all columns, computed in blocks of rows.

Blocks run side by side on the available cores, one BLAS thread each, as the parties of a federation
would use them.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.baselines.float_operator import FloatOperator, side_by_side
from vertikal.data.prepare import Scaling
from vertikal.data.tables import Block, Table
from vertikal.kernels.random_features import FourierMap
from vertikal.kernels.spectral import Kernel
from vertikal.secure.ring import Ring
from vertikal.solvers.operator import FeatureOperator, OpenOperator

Array = npt.NDArray[Any]

BLOCK_BYTES = 4 << 20


@dataclass(frozen=True)
class Draw:
    """ω (columns, D), divided by the bandwidth, and b (D,) as a part of a full turn."""

    directions: Array
    turns: Array

    @classmethod
    def of(cls, kernel: Kernel, columns: int, width: int, bandwidth: float, seed: int) -> Draw:
        generator = np.random.default_rng(seed)
        # Zero, which would be an infinite direction, becomes the smallest number drawn otherwise.
        uniforms = np.maximum(generator.random((columns + 1, width)), 2.0**-53)
        directions = kernel.directions(uniforms[1:], kernel.shared_scalars(uniforms[0]))
        return cls(directions / bandwidth, generator.random(width))


class PooledFeatures(ABC):
    """φ of pooled columns, in one form or another."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.threads = len(os.sched_getaffinity(0))

    @abstractmethod
    def operator(self, table: Table) -> FeatureOperator:
        """Φ of all rows of ``table``."""

    @abstractmethod
    def features(self, block: Block) -> Array:
        """φ of some rows, (rows, width)."""

    def decide(self, table: Table, coefficients: Array) -> Array:
        """Φ @ coefficients, (rows, outputs), without keeping Φ."""
        values = np.empty((table.rows, coefficients.shape[1]))

        def work(span: slice) -> None:
            values[span] = self.features(table.block(span)) @ coefficients

        side_by_side(work, self.spans(table, 8), self.threads)
        return values

    def spans(self, table: Table, itemsize: int) -> list[slice]:
        """The rows in blocks of a few megabytes, and at least one block per core."""
        even = -(-table.rows // self.threads)
        height = int(np.clip(BLOCK_BYTES // (self.width * itemsize), 16, 8192))
        return table.spans(max(1, min(height, even)))


class PhaseFeatures(PooledFeatures):
    """φ through phases in a ring, exactly as the parties of a federation compute them."""

    def __init__(self, draw: Draw, scaling: Scaling, bits: int) -> None:
        super().__init__(len(draw.turns))
        ring = Ring(bits)
        centre, factor = scaling.arrays()
        offsets = np.floor(draw.turns * 2.0**bits).astype(ring.dtype)
        self._map = FourierMap(
            ring, draw.directions * factor[:, None], offsets, self.width, centre=centre
        )

    def operator(self, table: Table) -> FeatureOperator:
        phases = np.empty((table.rows, self.width), self._map.ring.dtype)

        def work(span: slice) -> None:
            phases[span] = self._map.local(table.block(span))

        side_by_side(work, self.spans(table, phases.itemsize), self.threads)
        return OpenOperator(self._map, table.rows, phases, threads=self.threads)

    def features(self, block: Block) -> Array:
        return self._map.decode(self._map.local(block), np.float64)


class FloatFeatures(PooledFeatures):
    """φ = √(2/D)·cos(ωᵀx + b) in single precision, without a ring."""

    def __init__(self, draw: Draw, scaling: Scaling) -> None:
        super().__init__(len(draw.turns))
        self._centre, self._factor = scaling.arrays()
        self._directions = draw.directions
        self._angles = 2 * np.pi * draw.turns
        self._norm = np.float32(np.sqrt(2 / self.width))

    def operator(self, table: Table) -> FeatureOperator:
        features = np.empty((table.rows, self.width), np.float32)

        def work(span: slice) -> None:
            features[span] = self.features(table.block(span))

        side_by_side(work, self.spans(table, features.itemsize), self.threads)
        return FloatOperator(features, self.threads)

    def features(self, block: Block) -> Array:
        if sparse.issparse(block):
            # The centre goes into the angle, so that zeros need not be written down.
            directions = self._directions * self._factor[:, None]
            angles = np.asarray(block @ directions - self._centre @ directions + self._angles)
            angles = np.mod(angles, 2 * np.pi).astype(np.float32)
        else:
            columns = ((block - self._centre) * self._factor).astype(np.float32)
            angles = columns @ self._directions.astype(np.float32)
            angles += self._angles.astype(np.float32)
        np.cos(angles, out=angles)
        angles *= self._norm
        return np.asarray(angles)
