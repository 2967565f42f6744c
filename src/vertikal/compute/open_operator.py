"""Φ at a label party that holds the phases: cached as bytes, multiplied by in threads.

Rows that do not fit into the cache are asked for again, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.kernels.feature_map import FeatureMap
from vertikal.reused_memory import reused_memory
from vertikal.side_by_side import cores, side_by_side
from vertikal.solvers.feature_operator import ALL, FeatureOperator, RestrictedOperator

Array: TypeAlias = npt.NDArray[Any]
Fetch: TypeAlias = Callable[[Array], Iterator[tuple[slice, Array]]]
"""Row numbers in, (positions among them, ring elements of those rows) out, block by block."""

CHUNK = 2048
"""Rows per task. Fixed, so that sums do not depend on the number of cores."""

PRECISE = 1 << 22
"""Up to so many entries features are kept in double precision, where it costs next to nothing."""

STRIPES = 4
"""Sums of a Gram matrix that run side by side, where that is small enough to be kept so often."""

WIDE = 8192
"""Features of which a Gram matrix is kept once."""

PANEL = 256
"""Rows of a Gram matrix that are multiplied at once."""


class OpenOperator(FeatureOperator):
    """Φ decoded from ring elements that this party holds.

    ``cached`` (r, elements) are those of the first r rows; ``fetch`` brings those of any others.
    ``precise`` keeps features in double precision, by default if they are few.
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        rows: int,
        cached: Array,
        fetch: Fetch | None = None,
        threads: int | None = None,
        precise: bool | None = None,
    ) -> None:
        self.rows = rows
        self.width = feature_map.width
        self._map = feature_map
        self.cached = cached
        self._fetch = fetch
        self._threads = threads or cores()
        self._precise: Array | None = None
        if precise is None:
            precise = len(cached) == rows and rows * self.width <= PRECISE
        if precise:
            self._precise = feature_map.decode(cached, np.float64)

    def with_elements(self, elements: Array) -> OpenOperator:
        """Return Φ of other ring elements of the same rows, such as multiples of phases."""
        return OpenOperator(self._map, len(elements), elements, threads=self._threads)

    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        values = np.empty((self.rows if rows is None else len(rows), coefficients.shape[1]))
        if self._precise is not None:
            part = self._precise[:, columns] if rows is None else self._precise[rows, columns]
            np.matmul(part, coefficients, out=values)
            return values

        def multiply(where: slice, elements: Array) -> None:
            values[where] = self._map.forward(elements[:, chosen], weights)

        chosen, weights = self._elements_of(columns), coefficients
        if chosen != columns:
            weights = np.zeros((self.width, coefficients.shape[1]))
            weights[columns] = coefficients
        self._each_block(rows, multiply)
        return values

    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        if self._precise is not None:
            part = self._precise[:, columns] if rows is None else self._precise[rows, columns]
            return np.asarray(part.T @ residuals)
        parts: dict[int, Array] = {}

        def multiply(where: slice, elements: Array) -> None:
            parts[where.start] = self._map.adjoint(elements[:, chosen], residuals[where])

        chosen = self._elements_of(columns)
        self._each_block(rows, multiply)
        width = len(range(self.width)[columns if chosen == columns else ALL])
        total = np.zeros((width, residuals.shape[1]))
        for start in sorted(parts):
            total += parts[start]
        return total if chosen == columns else total[columns]

    def _elements_of(self, columns: slice) -> slice:
        """Ring elements that these features are decoded from: all, where each gives several."""
        return columns if self._map.elements == self.width else ALL

    def gram(self, rows: Array, weights: Array, columns: slice = ALL) -> Array:
        if self._precise is not None:
            part = self._precise[rows, columns]
            return np.asarray((part.T * weights) @ part)
        width = len(range(self.width)[columns])
        # Each stripe has its own accumulator, so that they can run side by side. Of a symmetric
        # matrix the panels from the diagonal on are enough.
        count = max(1, min(STRIPES, (WIDE // max(1, width)) ** 2))
        stripes = reused_memory.empty((count, width, width), np.float32)
        stripes[...] = 0
        chosen = self._elements_of(columns)
        roots = np.sqrt(weights).astype(np.float32)

        def multiply(where: slice, elements: Array, stripe: int) -> None:
            features = self._map.decode(elements[:, chosen])
            features = features if chosen == columns else features[:, columns]
            weighted = reused_memory.empty(features.shape, np.float32)
            np.multiply(features, roots[where, None], out=weighted)
            for start in range(0, width, PANEL):
                panel = slice(start, start + PANEL)
                stripes[stripe, panel, start:] += weighted[:, panel].T @ weighted[:, start:]

        cuts = np.linspace(0, len(rows), count + 1).astype(int)

        def work(stripe: int) -> None:
            for start in range(cuts[stripe], cuts[stripe + 1], CHUNK // 2):
                where = slice(start, min(start + CHUNK // 2, int(cuts[stripe + 1])))
                multiply(where, self.cached[rows[where]], stripe)

        if rows.max(initial=-1) < len(self.cached):
            side_by_side(work, range(count), self._threads)
        else:
            self._each_block(rows, lambda where, elements: multiply(where, elements, 0))
        for stripe in stripes[1:]:
            stripes[0] += stripe
        total = reused_memory.empty((width, width), np.float64)
        total[...] = stripes[0]
        _mirror(total)
        return total

    def restricted(self, rows: Array) -> FeatureOperator:
        if self._precise is not None or rows.max(initial=-1) < len(self.cached):
            return RestrictedOperator(self, rows)
        elements = np.empty((len(rows), self.cached.shape[1]), self.cached.dtype)
        for where, part in self._ask(rows):
            elements[where] = part
        return OpenOperator(self._map, len(rows), elements, threads=self._threads)

    def _each_block(self, rows: Array | None, task: Callable[[slice, Array], None]) -> None:
        """Run ``task(positions, elements)`` for all wanted rows, cached ones side by side."""
        if rows is None:
            held = len(self.cached)
            self._each_cached(held, lambda where: self.cached[where], task)
            if held < self.rows:
                missing = np.arange(held, self.rows)
                for where, elements in self._ask(missing):
                    task(slice(held + where.start, held + where.stop), elements)
        elif rows.max(initial=-1) < len(self.cached):
            self._each_cached(len(rows), lambda where: self.cached[rows[where]], task)
        else:
            for where, elements in self._ask(rows):
                task(where, elements)

    def _each_cached(
        self, count: int, take: Callable[[slice], Array], task: Callable[[slice, Array], None]
    ) -> None:
        spans = [slice(i, min(i + CHUNK, count)) for i in range(0, count, CHUNK)]
        side_by_side(lambda where: task(where, take(where)), spans, self._threads)

    def _ask(self, rows: Array) -> Iterator[tuple[slice, Array]]:
        if self._fetch is None:
            raise IndexError(f"rows beyond the {len(self.cached)} cached ones, and no way to fetch")
        return self._fetch(rows)


def _mirror(square: Array) -> None:
    """Complete a symmetric matrix of which the panels from the diagonal on are known."""
    for start in range(0, len(square), PANEL):
        stop = start + PANEL
        corner = square[start:stop, start:stop]
        np.copyto(corner, corner.T, where=np.tri(len(corner), k=-1, dtype=bool))
        square[stop:, start:stop] = square[start:stop, stop:].T
