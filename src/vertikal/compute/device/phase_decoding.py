"""Ring elements on a device, as features and in products with them, for each kind of feature map.

`forward` and `adjoint` never write all features down. A single vector on a GPU goes through the
kernels of `fused_passes`; everything else decodes some rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from vertikal.compute.device.fused_passes import load_passes
from vertikal.kernels.feature_map import FeatureMap
from vertikal.kernels.random_features import FourierMap

DECODED = 1 << 26
"""Features that are written down at a time."""


class Decoding:
    """Features of one map; elements are tensors (rows, elements) of signed integers, or floats.

    ``fused``: False leaves the kernels for GPUs alone.
    """

    def __init__(self, feature_map: FeatureMap, device: Any, *, fused: bool = True) -> None:
        self.width = feature_map.width
        self._map = feature_map
        self._fourier = feature_map if isinstance(feature_map, FourierMap) else None
        self._bits = feature_map.ring.bits if self._fourier else 0
        simple = self._fourier is not None and self._fourier.harmonics == (1,)
        self._passes = load_passes() if fused and simple and device.type == "cuda" else None

    def decode(self, elements: Any, dtype: Any = torch.float32) -> Any:
        """Return the features (rows, width) of these elements."""
        if self._fourier is None:
            return elements.to(dtype)
        unit = 2 * math.pi / 2.0**self._bits
        parts = []
        for harmonic in self._fourier.harmonics:
            # A signed integer wraps as a phase does, and small angles stay precise.
            turned = elements if harmonic == 1 else elements * harmonic
            angles = turned.to(dtype) * unit
            parts.append(torch.cos(angles))
            if self._fourier.pair:
                parts.append(torch.sin(angles))
        features = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return features.mul_(self._fourier.norm)

    def forward(self, elements: Any, coefficients: Any) -> Any:
        """Return features @ coefficients, (rows, outputs) in double precision."""
        if self._passes is not None and self._fourier and coefficients.shape[1] == 1:
            weights = (coefficients[:, 0] * self._fourier.norm).float()
            return self._passes.forward(elements, weights, self._bits, self._fourier.pair)[:, None]
        single = coefficients.float()
        values = torch.empty(
            (len(elements), single.shape[1]), dtype=torch.float64, device=elements.device
        )
        for where in self._spans(len(elements)):
            values[where] = (self.decode(elements[where]) @ single).double()
        return values

    def adjoint(self, elements: Any, residuals: Any) -> Any:
        """Return features.T @ residuals, (width, outputs) in double precision."""
        if self._passes is not None and self._fourier and residuals.shape[1] == 1:
            single = residuals[:, 0].float()
            gathered = self._passes.adjoint(elements, single, self._bits, self._fourier.pair)
            return (gathered * self._fourier.norm)[:, None]
        single = residuals.float()
        total = torch.zeros(
            (self.width, single.shape[1]), dtype=torch.float64, device=elements.device
        )
        for where in self._spans(len(elements)):
            total += (self.decode(elements[where]).T @ single[where]).double()
        return total

    def gram(self, elements: Any, weights: Any, columns: slice) -> Any:
        """Return features.T · diag(weights) · features of some columns, in single precision."""
        roots = weights.sqrt().float()
        size = len(range(self.width)[columns])
        total = torch.zeros((size, size), device=elements.device)
        for where in self._spans(len(elements)):
            features = self.decode(elements[where])[:, columns] * roots[where, None]
            total.addmm_(features.T, features)
        return total

    def _spans(self, rows: int) -> Iterator[slice]:
        height = max(16, DECODED // max(1, self.width))
        for start in range(0, rows, height):
            yield slice(start, min(start + height, rows))
