"""The local part of a feature map on a device: projections to phases, or distances to landmarks.

In double precision, as on the processor. Another order of the additions moves a sum by some 1e-13
of itself; a phase differs by one step where that crosses a rounding boundary, and only there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from vertikal.compute.device.transfer import Blocks, signed, to_device
from vertikal.kernels.feature_map import Block, FeatureMap
from vertikal.kernels.landmarks import LandmarkMap
from vertikal.kernels.random_features import FourierMap
from vertikal.ring.integers import LIMIT, ROUNDER

Array = npt.NDArray[Any]

TILE = 1 << 27
"""Ring elements that are computed at a time."""


class LocalPart:
    """One party's part of a feature map, computed on a device."""

    def __init__(self, feature_map: FeatureMap, device: Any) -> None:
        self._map, self._device = feature_map, device
        self._kind = getattr(torch, f"int{feature_map.ring.bits}")
        if isinstance(feature_map, FourierMap):
            numbers = (feature_map.steps, feature_map.offsets)
        else:
            assert isinstance(feature_map, LandmarkMap)
            numbers = (-2.0 * feature_map.points, feature_map.lengths)
            self._factor, self._middle = (
                torch.from_numpy(np.ascontiguousarray(one)).to(device)
                for one in (feature_map.factor, feature_map.middle)
            )
        self._matrix, self._shift = (to_device(one, device) for one in numbers)

    @staticmethod
    def offered(feature_map: FeatureMap) -> bool:
        """Return True if there is a form of this map for devices."""
        return isinstance(feature_map, FourierMap | LandmarkMap)

    def local(self, block: Block, out: Array | None = None) -> Array:
        """Return this party's ring elements (rows, elements), in ``out`` if given.

        Sparse rows are left to the map itself, whose loops skip zeros; so are cells that no phase
        can be made of, which it refuses by name.
        """
        if sparse.issparse(block):
            return self._map.local(block, out)
        shape = (len(block), self._map.elements)
        elements = np.empty(shape, self._map.ring.dtype) if out is None else out
        for where, part, fine in self._parts(block):
            if not bool(fine):
                return self._map.local(np.asarray(block, np.float64), out)
            torch.from_numpy(signed(elements[where])).copy_(part)
        return elements

    def resident(self, block: Block) -> Any | None:
        """Return the elements on the device, as signed integers; None if some cell allows none."""
        shape = (len(block), self._map.elements)
        elements = torch.empty(shape, dtype=self._kind, device=self._device)
        all_fine = torch.ones((), dtype=torch.bool, device=self._device)
        for where, part, fine in self._parts(block):
            elements[where] = part
            all_fine &= fine
        return elements if bool(all_fine) else None

    def _parts(self, block: Block) -> Iterator[tuple[slice, Any, Any]]:
        """Yield (rows, elements, True if all are within range) of some rows at a time."""
        height = max(16, TILE // max(1, self._map.elements))
        work = self._phases if isinstance(self._map, FourierMap) else self._distances
        for where, cells in Blocks(self._device).each(block, min(height, max(1, len(block)))):
            yield where, *work(cells.double())

    def _phases(self, cells: Any) -> tuple[Any, Any]:
        steps = torch.addmm(self._shift, cells, self._matrix)
        lowest, highest = torch.aminmax(steps) if steps.numel() else (steps.sum(), steps.sum())
        # Written so that NaN answers no.
        fine = (lowest >= -LIMIT) & (highest < LIMIT - 0.5)
        # The same rounding as on the processor: the integer in the low bits of the mantissa.
        steps += ROUNDER
        return steps.view(torch.int64).to(self._kind), fine

    def _distances(self, cells: Any) -> tuple[Any, Any]:
        assert isinstance(self._map, LandmarkMap)
        rows = cells * self._factor - self._middle
        own = rows.square().sum(dim=1)
        # ‖x − z‖² = ‖x‖² − 2⟨x, z⟩ + ‖z‖², in ring steps.
        steps = torch.addmm(self._shift, rows, self._matrix)
        steps += own[:, None]
        steps.clamp_(0.0, float(self._map.most)).round_()
        return steps.to(torch.int64).to(self._kind), torch.isfinite(own).all()
