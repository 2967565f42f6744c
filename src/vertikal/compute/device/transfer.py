"""The way to a device and back: arrays in blocks, by way of page-locked memory where it is a GPU.

While one block travels the next is copied into the other of two page-locked buffers, by several
threads, so that the link is what limits a transfer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vertikal.side_by_side import cores, side_by_side

Array = npt.NDArray[Any]

BUFFER = 64 << 20
"""Bytes of a page-locked buffer."""
COPIERS = 8
"""Threads that fill a buffer, at most."""


def signed(elements: Array) -> Array:
    """Return the same bits as signed integers, of which torch knows all widths."""
    if elements.dtype.kind != "u":
        return elements
    return elements.view(np.dtype(f"int{8 * elements.itemsize}"))


def to_device(values: Array, device: Any) -> Any:
    """Copy a whole array to the device; unsigned integers arrive as signed ones of the same bits.

    Rows of several dimensions travel in blocks.
    """
    flat = signed(np.ascontiguousarray(values))
    if device.type != "cuda" or flat.nbytes < BUFFER // 16:
        return torch.from_numpy(flat.copy() if flat.size else flat).to(device)
    kind = torch.from_numpy(flat[:0]).dtype
    there = torch.empty(flat.shape, dtype=kind, device=device)
    for where, block in Blocks(device).each(flat):
        there[where] = block
    return there


class Blocks:
    """Blocks of rows of an array, one after the other on the device, each while it is worked on."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._locked = device.type == "cuda"

    def each(self, values: Array, height: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield (rows, block on the device); a block is overwritten two blocks later."""
        row = max(1, values[:1].nbytes)
        height = max(1, BUFFER // row) if height is None else height
        spans = [slice(i, min(i + height, len(values))) for i in range(0, len(values), height)]
        if not self._locked:
            for where in spans:
                yield where, torch.from_numpy(np.array(values[where]))
            return
        shape = (height, *values.shape[1:])
        kind = torch.from_numpy(np.empty(0, values.dtype)).dtype
        buffers = [torch.empty(shape, dtype=kind, pin_memory=True) for _ in range(2)]
        places = [torch.empty(shape, dtype=kind, device=self._device) for _ in range(2)]
        copying = torch.cuda.Stream(self._device)
        working = torch.cuda.current_stream(self._device)
        arrived = [torch.cuda.Event() for _ in range(2)]
        worked = [torch.cuda.Event() for _ in range(2)]

        def send(number: int) -> None:
            where, turn = spans[number], number % 2
            count = where.stop - where.start
            # The buffer is free once what was in it has travelled.
            arrived[turn].synchronize()
            fill(buffers[turn][:count].numpy(), values[where])
            with torch.cuda.stream(copying):
                copying.wait_event(worked[turn])
                places[turn][:count].copy_(buffers[turn][:count], non_blocking=True)
                arrived[turn].record(copying)

        send(0)
        for number, where in enumerate(spans):
            turn = number % 2
            working.wait_event(arrived[turn])
            yield where, places[turn][: where.stop - where.start]
            worked[turn].record(working)
            if number + 1 < len(spans):
                send(number + 1)
        torch.cuda.synchronize(self._device)


def fill(buffer: Array, values: Array) -> None:
    """Copy into a buffer, by several threads."""
    threads = min(COPIERS, cores())
    step = max(1, -(-len(values) // threads))
    spans = [slice(i, i + step) for i in range(0, len(values), step)]
    side_by_side(lambda where: np.copyto(buffer[where], values[where]), spans, threads)
