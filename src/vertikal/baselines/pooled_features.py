"""Random features of pooled columns: drawn once for all columns, computed in blocks of rows.

Blocks run side by side on the available cores, one BLAS thread each, as the parties of a federation
would use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.compute.device.choice import DeviceName, choose_device
from vertikal.compute.drawing import draw_in_threads
from vertikal.compute.open_operator import OpenOperator
from vertikal.compute.place import gather_there
from vertikal.data.scaling import Scaling
from vertikal.data.tables import Table
from vertikal.kernels.feature_map import Block, FeatureMap
from vertikal.kernels.random_features import FourierMap, project
from vertikal.kernels.spectral import Kernel
from vertikal.ring.integers import Ring
from vertikal.side_by_side import cores, side_by_side

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
        uniforms = generator.random((columns + 1, width))
        np.maximum(uniforms, 2.0**-53, out=uniforms)
        scalars = kernel.shared_scalars(uniforms[0])
        directions = draw_in_threads(kernel, uniforms[1:], scalars, bandwidth)
        return cls(directions, generator.random(width))


def phase_map(draw: Draw, scaling: Scaling, bits: int) -> FourierMap:
    """φ through phases in a ring, exactly as the parties of a federation compute them."""
    ring = Ring(bits)
    centre, factor = scaling.arrays()
    offsets = np.floor(draw.turns * 2.0**bits).astype(ring.dtype)
    directions = draw.directions * factor[:, None]
    return FourierMap(ring, directions, offsets, len(draw.turns), centre=centre)


class CosineMap(FeatureMap):
    """φ = √(2/D)·cos(ωᵀx + b) in single precision, without a ring: decoding leaves it as it is."""

    def __init__(self, draw: Draw, scaling: Scaling) -> None:
        self.width = len(draw.turns)
        centre, factor = scaling.arrays()
        self._directions = draw.directions * factor[:, None]
        self._angles = 2 * np.pi * draw.turns - centre @ self._directions
        self._norm = np.float32(np.sqrt(2 / self.width))

    def local(self, block: Block, out: Array | None = None) -> Array:
        # Reduced in double precision: single precision loses large angles.
        angles = np.mod(project(block, self._directions) + self._angles, 2 * np.pi)
        features = np.cos(angles.astype(np.float32), out=out)
        features *= self._norm
        return np.asarray(features)

    def decode(self, total: Array, dtype: npt.DTypeLike = np.float32) -> Array:
        return total.astype(dtype, copy=False)


def gather(feature_map: FeatureMap, table: Table, device: DeviceName = "cpu") -> OpenOperator:
    """Φ of all rows of ``table``; on a GPU the elements are made there and stay."""
    there = choose_device(device, table.rows * feature_map.elements)
    if there is not None and not table.is_sparse:
        found = gather_there(feature_map, table.raw(slice(0, table.rows)), there)
        if found is not None:
            return found
    sample = feature_map.local(table.block(slice(0, 1)))
    elements = np.empty((table.rows, feature_map.width), sample.dtype)

    def work(span: slice) -> None:
        feature_map.local(table.block(span), elements[span])

    side_by_side(work, _spans(table, feature_map.width * elements.itemsize), cores())
    return OpenOperator(feature_map, table.rows, elements)


def decide(feature_map: FeatureMap, table: Table, coefficients: Array) -> Array:
    """Φ @ coefficients, (rows, outputs), without keeping Φ."""
    values = np.empty((table.rows, coefficients.shape[1]))

    def work(span: slice) -> None:
        elements = feature_map.local(table.block(span))
        values[span] = feature_map.decode(elements, np.float64) @ coefficients

    side_by_side(work, _spans(table, 8 * feature_map.width), cores())
    return values


def _spans(table: Table, row_bytes: int) -> list[slice]:
    """The rows in blocks of a few megabytes, and at least one block per core."""
    height = int(np.clip(BLOCK_BYTES // row_bytes, 16, 8192))
    return table.spans(max(1, min(height, -(-table.rows // cores()))))
