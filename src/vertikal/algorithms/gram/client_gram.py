"""SecGram for many clients, any of which may vanish: the linear kernel by secure aggregation.

Each client holds its own columns of the same rows, down to one. It sends its masked outer product,
of which only the entries on and above the diagonal travel; the server learns the sum over the
clients that stayed. The aggregation itself is passed in (`secure.secagg.in_one_process.aggregate`,
with its drop-outs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.gram.packing import packed_products, smallest_ring, unpacked
from vertikal.algorithms.gram.secgram import check_bits
from vertikal.errors import InputError, RingError
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]


class Total(Protocol):
    """Result of an aggregation."""

    @property
    def total(self) -> Array: ...
    @property
    def survivors(self) -> tuple[str, ...]: ...


class Aggregation(Protocol):
    """Secure sum of ``values(client)`` over the clients that stay."""

    def __call__(
        self, clients: Sequence[str], values: Any, *, ring: Ring, length: int
    ) -> Total: ...


@dataclass(frozen=True)
class ClientGram:
    """Kernel over the columns of ``survivors``, the clients that stayed."""

    values: Array  # (rows, rows) int64
    survivors: tuple[str, ...]
    ring: Ring


def secure_gram(
    columns: Mapping[str, Array], aggregate: Aggregation, *, largest: int = 1, binary: bool = False
) -> ClientGram:
    """Compute K = Σ_u x_u x_uᵀ over the clients exactly, SecGram 2.1.

    ``columns`` holds by client (rows,) or (rows, own columns) whole numbers of at most ``largest``
    in magnitude. All agree on ``largest`` beforehand: it decides the ring, and no client may
    exceed it.
    """
    blocks = {name: check_client(name, x, largest, binary) for name, x in columns.items()}
    heights = {block.shape[0] for block in blocks.values()}
    if len(heights) != 1:
        raise InputError.of("columns", "of one number of rows at all clients", sorted(heights))
    rows = heights.pop()
    width = sum(block.shape[1] for block in blocks.values())
    ring = smallest_ring(width, largest)
    result = aggregate(
        tuple(blocks),
        lambda name: packed_products(blocks[name], ring),
        ring=ring,
        length=rows * (rows + 1) // 2,
    )
    return ClientGram(unpacked(result.total, rows, ring), result.survivors, ring)


def check_client(name: str, values: Any, largest: int, binary: bool) -> Array:
    """Check a client's columns before anything leaves it, and return (rows, columns) int64."""
    block = np.asarray(values)
    block = block[:, None] if block.ndim == 1 else block
    if block.ndim != 2 or not np.isfinite(block.astype(np.float64)).all():
        raise InputError.of(
            f"columns of {name}", "finite numbers in one or two dimensions", f"shape {block.shape}"
        )
    if binary:
        check_bits(name, block.astype(np.float64))
    whole = np.rint(block.astype(np.float64))
    if (whole != block).any():
        raise InputError.of(
            f"columns of {name}", "whole numbers; scale and round them", "fractions"
        )
    if np.abs(whole).max(initial=0) > largest:
        raise RingError(
            f"columns of {name}: at most {largest} in magnitude was agreed on, got "
            f"{np.abs(whole).max():g}; raise largest"
        )
    return whole.astype(np.int64)
