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
    """The kind of a column: ``number``, ``text``, ``nothing`` (no type), or another type's name."""
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
    """Turn a column of numbers, or of nothing, into doubles; NaN where a cell is missing."""
    found = plain(cells).cast(arrow().float64(), safe=False)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.float64)


def integers(cells: Any) -> Array:
    """Turn a column of whole numbers into 64-bit integers; an empty array for any other column."""
    pa = arrow()
    found = plain(cells)
    if not pa.types.is_integer(found.type):
        return np.empty(0, np.int64)
    return np.asarray(found.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)


def texts(cells: Any) -> Any:
    """Strip white space from both ends of Arrow text; a cell that then is empty is missing."""
    pa = arrow()
    from pyarrow import compute

    found = compute.utf8_trim_whitespace(plain(cells).cast(pa.string()))
    return compute.if_else(compute.equal(found, ""), pa.scalar(None, pa.string()), found)


def parsed(words: Any) -> Array | None:
    """Read texts as doubles, NaN where one is missing; None if one of them is no number."""
    pa = arrow()
    try:
        found = words.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return np.asarray(found.to_numpy(zero_copy_only=False), np.float64)


def places_of(words: Any, known: Sequence[str]) -> Array:
    """Find the place of each text in ``known``; −1 where it is missing or not one of these."""
    pa = arrow()
    from pyarrow import compute

    found = compute.index_in(words, value_set=pa.array(known, pa.string()), skip_nulls=True)
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def plain(cells: Any) -> Any:
    """Unwrap a column: PostgreSQL's numerics come as extensions, repeated texts as numbers."""
    if isinstance(cells, arrow().ExtensionArray):
        cells = cells.storage
    if not hasattr(cells, "dictionary_decode"):
        return cells
    if str(cells.type.value_type) == "string_view":
        # Polars' categories, which Arrow cannot decode as they are.
        words = cells.dictionary.cast(arrow().string())
        cells = arrow().DictionaryArray.from_arrays(cells.indices, words)
    return cells.dictionary_decode()
