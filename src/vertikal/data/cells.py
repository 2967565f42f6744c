"""Cells of an Arrow column as plain numbers or plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.data.file_formats import arrow

Array = npt.NDArray[Any]

NUMBER, TEXT, NOTHING = "number", "text", "nothing"


def kind_of(cells: Any) -> str:
    """``number``, ``text``, ``nothing`` (a column without a type), or the name of another type."""
    types = arrow().types
    kind = plain(cells).type
    if types.is_null(kind):
        return NOTHING
    if types.is_integer(kind) or types.is_floating(kind):
        return NUMBER
    if types.is_boolean(kind) or types.is_decimal(kind):
        return NUMBER
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return TEXT
    return str(kind)


def numbers(cells: Any) -> Array:
    """Doubles, NaN where a cell is missing; of numbers, or of nothing."""
    found = plain(cells).cast(arrow().float64(), safe=False)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.float64)


def integers(cells: Any) -> Array:
    """The same as whole numbers of 64 bits, where the column is of these; else nothing."""
    pa = arrow()
    found = plain(cells)
    if not pa.types.is_integer(found.type):
        return np.empty(0, np.int64)
    return np.asarray(found.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)


def texts(cells: Any) -> Any:
    """Arrow text without white space at both ends; missing where a cell has nothing else."""
    pa = arrow()
    from pyarrow import compute

    found = compute.utf8_trim_whitespace(plain(cells).cast(pa.string()))
    return compute.if_else(compute.equal(found, ""), pa.scalar(None, pa.string()), found)


def parsed(words: Any) -> Array | None:
    """The numbers that these texts all are, NaN where one is missing; None if one is no number."""
    pa = arrow()
    try:
        found = words.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return np.asarray(found.to_numpy(zero_copy_only=False), np.float64)


def places_of(words: Any, known: Sequence[str]) -> Array:
    """Where each text stands among ``known``; −1 where it is missing or not one of these."""
    pa = arrow()
    from pyarrow import compute

    found = compute.index_in(words, value_set=pa.array(known, pa.string()), skip_nulls=True)
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def plain(cells: Any) -> Any:
    """A column as it is meant: PostgreSQL's numerics come wrapped, repeated texts by number."""
    if isinstance(cells, arrow().ExtensionArray):
        cells = cells.storage
    return cells.dictionary_decode() if hasattr(cells, "dictionary_decode") else cells
