"""Directions of a kernel from uniform numbers, by several threads where there are many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.kernels.spectral import Kernel
from vertikal.side_by_side import cores, side_by_side

Array = npt.NDArray[Any]

TASK = 1 << 18
"""Numbers of a thread's task."""


def draw_in_threads(
    kernel: Kernel, uniforms: Array, scalars: Array | None, bandwidth: float
) -> Array:
    """Return `Kernel.directions` of uniforms (columns, D) over the bandwidth.

    Every number depends on its own uniform only, so that cutting them changes none.
    """
    columns, width = uniforms.shape
    drawn = np.empty_like(uniforms)
    height = max(1, TASK // max(1, width))
    spans = [slice(i, i + height) for i in range(0, columns, height)]

    def work(where: slice) -> None:
        np.divide(kernel.directions(uniforms[where], scalars), bandwidth, out=drawn[where])

    side_by_side(work, spans, cores())
    return drawn
