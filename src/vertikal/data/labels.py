"""A party's column of labels as the targets that programs learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.data.cells import TEXT, kind_of, numbers, parsed, texts
from vertikal.data.file_formats import arrow
from vertikal.data.sources import Source
from vertikal.errors import InputError

Array = npt.NDArray[Any]


def read_targets(
    source: Source, label: str, rows: Array | None = None, *, regression: bool
) -> Array:
    """Targets (rows, 1): the numbers themselves for a regression, else −1 and +1 for two classes.

    Classes may be numbers or text; the larger, or the later in the alphabet, is +1. All rows are
    read by default, otherwise those in ``rows``, in that order.
    """
    found = _read(source, label, rows)
    if regression and found.dtype.kind == "U":
        raise InputError.of(f"label of {source.party}", "numbers, for a regression", "text")
    if found.dtype.kind != "U" and not np.isfinite(found).all():
        raise InputError.of(f"label of {source.party}", "finite numbers", "infinity")
    if regression:
        return found[:, None]
    classes = np.unique(found)
    if len(classes) != 2:
        raise InputError.of(f"label of {source.party}", "of two classes", f"{len(classes)} classes")
    return np.where(found == classes[1], 1.0, -1.0)[:, None]


def _read(source: Source, label: str, rows: Array | None) -> Array:
    """The cells (rows,) as doubles, or as text if one of them is no number; none is missing."""
    if label not in source.columns:
        raise InputError.of(
            f"label of {source.party}", f"one of the columns {list(source.columns)}", label
        )
    pa = arrow()
    blocks = [batch.column(0) for batch in source.blocks([label])]
    words = [texts(cells) for cells in blocks if kind_of(cells) == TEXT]
    if words:
        column = pa.chunked_array(words).combine_chunks()
        chosen = column if rows is None else column.take(pa.array(rows))
        missing, found = chosen.null_count, parsed(chosen)
    else:
        found = np.concatenate([np.zeros(0), *map(numbers, blocks)])
        found = found if rows is None else found[rows]
        chosen, missing = found, int(np.isnan(found).sum())
    if missing:
        raise InputError(
            f"label of {source.party}: {missing} of {len(chosen)} are missing; leave such rows out"
        )
    return np.array(chosen.to_pylist(), dtype=str) if found is None else found
