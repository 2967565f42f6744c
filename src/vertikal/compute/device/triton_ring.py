"""The kernels for products in the ring, in Triton; imported only where that is installed.

As in `triton_passes` a sum for each place of a tile, and for each vector, stays in registers until
the end, so the matrix is read once for several vectors. All sums wrap, so their order is nothing.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

MOST = 8
"""Vectors of one reading of the matrix."""
TILES = {1: (8, 256), 2: (8, 128), 4: (4, 128), 8: (4, 128)}
"""Rows and columns of a tile, by the number of vectors."""
PROGRAMS = 2048
WARPS = 4


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _forward(  # type: ignore[no-untyped-def]
    matrix,
    vectors,
    out,
    rows,
    width,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, K)
    inside = r < rows
    total = tl.zeros((K, ROWS, COLUMNS), out.dtype.element_ty)
    for start in range(0, width, COLUMNS):
        c = start + tl.arange(0, COLUMNS)
        there = c < width
        places = matrix + r[:, None] * width + c[None, :]
        tile = tl.load(places, mask=inside[:, None] & there[None, :], other=0)
        given = tl.load(
            vectors + k[:, None] * width + c[None, :],
            mask=there[None, :] & (k >= 0)[:, None],
            other=0,
        )
        total += given[:, None, :] * tile[None, :, :]
    tl.store(
        out + k[:, None] * rows + r[None, :],
        tl.sum(total, 2),
        mask=inside[None, :] & (k >= 0)[:, None],
    )


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _adjoint(  # type: ignore[no-untyped-def]
    matrix,
    vectors,
    out,
    rows,
    width,
    height,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    stretch = tl.program_id(1).to(tl.int64)
    k = tl.arange(0, K)
    there = c < width
    total = tl.zeros((K, ROWS, COLUMNS), out.dtype.element_ty)
    for start in range(0, height, ROWS):
        r = stretch * height + start + tl.arange(0, ROWS)
        inside = r < rows
        places = matrix + r[:, None] * width + c[None, :]
        tile = tl.load(places, mask=inside[:, None] & there[None, :], other=0)
        given = tl.load(
            vectors + k[:, None] * rows + r[None, :],
            mask=inside[None, :] & (k >= 0)[:, None],
            other=0,
        )
        total += given[:, :, None] * tile[None, :, :]
    tl.store(
        out + (stretch * K + k)[:, None] * width + c[None, :],
        tl.sum(total, 1),
        mask=there[None, :] & (k >= 0)[:, None],
    )


def ring_forward(matrix: Any, vectors: Any) -> Any:
    """matrix @ vectors."""
    rows, width = matrix.shape
    parts = []
    for across in _several(vectors):
        count = len(across)
        tall, columns = TILES[count]
        out = torch.empty((count, rows), dtype=matrix.dtype, device=matrix.device)
        _forward[(triton.cdiv(rows, tall),)](
            matrix, across, out, rows, width, K=count, ROWS=tall, COLUMNS=columns, num_warps=WARPS
        )
        parts.append(out)
    return torch.cat(parts)[: vectors.shape[1]].T.contiguous()


def ring_adjoint(matrix: Any, vectors: Any) -> Any:
    """matrix.T @ vectors."""
    rows, width = matrix.shape
    parts = []
    for across in _several(vectors):
        count = len(across)
        tall, columns = TILES[count]
        programs = triton.cdiv(width, columns)
        stretches = max(1, min(triton.cdiv(rows, 8 * tall), PROGRAMS // programs))
        height = triton.cdiv(triton.cdiv(rows, stretches), tall) * tall
        out = torch.zeros((stretches, count, width), dtype=matrix.dtype, device=matrix.device)
        _adjoint[(programs, stretches)](
            matrix,
            across,
            out,
            rows,
            width,
            height,
            K=count,
            ROWS=tall,
            COLUMNS=columns,
            num_warps=WARPS,
        )
        parts.append(out.sum(0).to(matrix.dtype))
    return torch.cat(parts)[: vectors.shape[1]].T.contiguous()


def _several(vectors: Any) -> list[Any]:
    """Cut vectors (size, k) into groups (count, size); the last is filled up to a power of two."""
    across = vectors.T.contiguous()
    groups = []
    for start in range(0, len(across), MOST):
        group = across[start : start + MOST]
        count = 1 << (len(group) - 1).bit_length()
        if count > len(group):
            missing = torch.zeros(
                (count - len(group), group.shape[1]), dtype=group.dtype, device=group.device
            )
            group = torch.cat((group, missing))
        groups.append(group)
    return groups
