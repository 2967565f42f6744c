"""The store of summed ring elements at a label party, filled block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.kernels.feature_map import FeatureMap
from vertikal.reused_memory import reused_memory

Array = npt.NDArray[Any]


class ElementStore:
    """Ring elements of the first ``rows`` rows, in this process's memory."""

    def __init__(self, feature_map: FeatureMap, rows: int) -> None:
        self.rows = rows
        self._map = feature_map
        dtype = feature_map.kept_dtype or feature_map.ring.dtype
        self.cached = reused_memory.empty((rows, feature_map.elements), dtype)

    def room(self, where: slice) -> Any:
        """Hand out the place of these rows; None if sums are kept in another form."""
        return self.cached[where] if self._map.kept_dtype is None else None

    def add(self, where: slice, total: Any) -> Any:
        """Keep the sums of these rows; returns them in the form in which they are kept."""
        if self._map.kept_dtype is not None:
            self.cached[where] = self._map.keep(total)
        elif not np.may_share_memory(self.cached[where], total):
            self.cached[where] = total
        return self.cached[where]

    def restore(self, where: slice) -> Array:
        """Hand out the place of rows that are read from a checkpoint, in the form kept."""
        return self.cached[where]

    def restored(self, where: slice, kept: Array) -> None:
        """Take rows that were read from a checkpoint into their place."""
