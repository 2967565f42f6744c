"""A matrix of ring elements on a device, for the products of ``values`` and ``sealed``.

Signed integers of torch wrap as the ring does, so every product is the same element as elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vertikal.compute.device.fused_passes import load_ring_passes
from vertikal.compute.device.transfer import signed
from vertikal.ring.ring_matrix import Part, RingMatrix

Array = npt.NDArray[Any]

MULTIPLIED = 1 << 25
"""Products of single elements that are written down at a time."""


class DeviceRingMatrix(RingMatrix):
    """The same as `RingMatrix`, on a device. ``fused``: False leaves kernels for GPUs alone."""

    def __init__(
        self, shape: tuple[int, int], dtype: npt.DTypeLike, device: Any, *, fused: bool = True
    ) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._device = device
        kind = getattr(torch, f"int{8 * self.dtype.itemsize}")
        self._values = torch.empty(shape, dtype=kind, device=device)
        self._passes = load_ring_passes() if fused and device.type == "cuda" else None

    @contextmanager
    def writing(self, rows: slice) -> Iterator[Array]:
        """Hand out room for these rows; what is in it at the end goes to the device.

        On the way to a GPU it is page-locked memory, which torch uses again once it has travelled.
        """
        there: Any = self._values[rows]
        block = torch.empty(there.shape, dtype=there.dtype, pin_memory=self._device.type == "cuda")
        yield block.numpy().view(self.dtype)
        there.copy_(block, non_blocking=True)

    def product(self, kind: str, vectors: Array, part: Part = None) -> Array:
        given = torch.from_numpy(signed(np.ascontiguousarray(vectors))).to(self._device)
        return np.asarray(self.product_there(kind, given, part).cpu().numpy()).view(self.dtype)

    def product_there(self, kind: str, vectors: Any, part: Part = None) -> Any:
        """Multiply by vectors that are on the device already, as signed integers."""
        matrix = self._values if part is None else part(self._values).contiguous()
        multiply = self._forward if kind == "forward" else self._adjoint
        return multiply(matrix, vectors)

    def _forward(self, matrix: Any, vectors: Any) -> Any:
        if self._passes is not None:
            return self._passes.ring_forward(matrix, vectors)
        out = torch.empty((len(matrix), vectors.shape[1]), dtype=matrix.dtype, device=self._device)
        for where in _spans(*matrix.shape):
            for column, vector in enumerate(vectors.T):
                out[where, column] = (matrix[where] * vector).sum(dim=1).to(matrix.dtype)
        return out

    def _adjoint(self, matrix: Any, vectors: Any) -> Any:
        if self._passes is not None:
            return self._passes.ring_adjoint(matrix, vectors)
        shape = (vectors.shape[1], matrix.shape[1])
        out = torch.zeros(shape, dtype=torch.int64, device=self._device)
        for where in _spans(*matrix.shape):
            for column, vector in enumerate(vectors.T):
                out[column] += (matrix[where] * vector[where, None]).sum(dim=0)
        return out.T.to(matrix.dtype).contiguous()


def _spans(rows: int, width: int) -> Iterator[slice]:
    height = max(1, MULTIPLIED // max(1, width))
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))
