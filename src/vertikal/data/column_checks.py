"""Refusals of columns that no program can use: with cells that are not finite, or constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.data.tables import Block, Table
from vertikal.errors import InputError
from vertikal.side_by_side import cores, side_by_side

Array = npt.NDArray[Any]
Bounds = tuple[Array, Array]
"""The smallest and the largest cell of each column; NaN where a column has one."""

PART = 1 << 16
"""Cells looked at twice before the next ones: so many stay in a core's cache."""

_FILLED = ', or let missing="mean" fill it in'


def check_columns(table: Table, *, varying: bool) -> None:
    """Refuse NaN and infinite cells and, if ``varying``, dense columns that are constant.

    A sparse column may be empty, as words in a sample of texts are.
    """
    check_bounds(table, *column_bounds(table.raw(slice(None))), varying=varying)


def column_bounds(block: Block) -> Bounds:
    """Look for the smallest and the largest cell of each column."""
    if sparse.issparse(block):
        low, high = block.min(axis=0), block.max(axis=0)
        return np.asarray(low.todense()).ravel(), np.asarray(high.todense()).ravel()
    height = max(1, PART // max(1, block.shape[1]))
    if len(block) <= height:
        return block.min(axis=0), block.max(axis=0)
    starts = range(0, len(block), height)
    lows = np.empty((len(starts), block.shape[1]), block.dtype)
    highs = np.empty_like(lows)

    def look(part: int) -> None:
        rows = block[starts[part] : starts[part] + height]
        rows.min(axis=0, out=lows[part])
        rows.max(axis=0, out=highs[part])

    side_by_side(look, range(len(starts)), cores())
    return lows.min(axis=0), highs.max(axis=0)


def check_bounds(table: Table, lowest: Array, highest: Array, *, varying: bool) -> None:
    """Do the work of `check_columns` where the bounds of the columns are known already."""
    _check_finite(table, lowest, highest)
    constant = lowest == highest
    if varying and constant.any() and not table.is_sparse:
        column = int(np.argmax(constant))
        raise InputError(
            f"columns: {table.title(column)} must vary, got a constant "
            f"({lowest[column]:g} in each row), which adds nothing to a kernel: drop it"
        )


def _check_finite(table: Table, low: Array, high: Array) -> None:
    finite = np.isfinite(low) & np.isfinite(high)
    if not finite.all():
        column = int(np.argmin(finite))
        missing = np.isnan(low[column]) or np.isnan(high[column])
        what = "NaN (a missing value)" if missing else "infinity"
        raise InputError(
            f"columns: {table.title(column)} must hold finite numbers, got {what}; drop such "
            f"rows or put them right{_FILLED if missing else ''} (input contains NaN or infinity)"
        )
