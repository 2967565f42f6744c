"""Many keystreams added to one array, tile by tile.

All streams of a tile are added before the next tile is looked at, so that the tile stays in the
cache and no pad ever exists as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.secure.keys.prg import TILE, expand_into, keystream

Array = npt.NDArray[Any]


def add_streams(values: Array, streams: Sequence[tuple[bytes, int]]) -> None:
    """values += Σ sign · stream(key) in place, over (key, sign) of sign 1 or −1."""
    if values.dtype.kind != "u" or values.ndim != 1 or not values.flags.c_contiguous:
        raise InputError.of(
            "values", "a contiguous vector of ring elements", f"{values.dtype} {values.shape}"
        )
    opened = [(keystream(key, 0), sign) for key, sign in streams]
    height = TILE // values.itemsize
    tile = np.empty(min(height, values.size), values.dtype)
    for start in range(0, values.size, height):
        part = values[start : start + height]
        pad = tile[: part.size]
        view = pad.view(np.uint8).data
        for context, sign in opened:
            expand_into(context, view)
            (np.add if sign > 0 else np.subtract)(part, pad, out=part)
