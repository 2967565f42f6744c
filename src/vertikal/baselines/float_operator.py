"""Φ as an explicit matrix of features in single precision, as a program without a ring keeps it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.solvers.operator import ALL, CHUNK, PRECISE, STRIPES, FeatureOperator

Array = npt.NDArray[Any]


class FloatOperator(FeatureOperator):
    """Φ from ``features`` (rows, width) float32.

    As in `OpenOperator`, a small matrix is multiplied in double precision, where that costs next
    to nothing; its entries are single in either case.
    """

    def __init__(self, features: Array, threads: int) -> None:
        self.rows, self.width = features.shape
        self._features = features.astype(np.float64) if features.size <= PRECISE else features
        self._dtype = self._features.dtype
        self._threads = threads

    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        weights = coefficients.astype(self._dtype)
        values = np.empty((self.rows if rows is None else len(rows), coefficients.shape[1]))

        def multiply(where: slice) -> None:
            values[where] = self._part(where, rows, columns) @ weights

        side_by_side(multiply, _spans(len(values)), self._threads)
        return values

    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        weights = residuals.astype(self._dtype)
        parts: dict[int, Array] = {}

        def multiply(where: slice) -> None:
            parts[where.start] = self._part(where, rows, columns).T @ weights[where]

        side_by_side(multiply, _spans(len(residuals)), self._threads)
        total = np.zeros((len(range(self.width)[columns]), residuals.shape[1]))
        for start in sorted(parts):
            total += parts[start]
        return total

    def gram(self, rows: Array, weights: Array, columns: slice = ALL) -> Array:
        width = len(range(self.width)[columns])
        roots = np.sqrt(weights).astype(self._dtype)
        # Each stripe has its own accumulator, so that they can run side by side.
        stripes = np.zeros((STRIPES, width, width), self._dtype)
        cuts = np.linspace(0, len(rows), STRIPES + 1).astype(int)

        def work(stripe: int) -> None:
            for start in range(cuts[stripe], cuts[stripe + 1], CHUNK // 2):
                where = slice(start, min(start + CHUNK // 2, int(cuts[stripe + 1])))
                part = self._part(where, rows, columns) * roots[where, None]
                stripes[stripe] += part.T @ part

        side_by_side(work, range(STRIPES), self._threads)
        return np.asarray(stripes.sum(axis=0), np.float64)

    def _part(self, where: slice, rows: Array | None, columns: slice) -> Array:
        return self._features[where if rows is None else rows[where], columns]


def side_by_side(work: Callable[[Any], None], tasks: Sequence[Any], threads: int) -> None:
    """Run ``work`` for each task, on ``threads`` threads."""
    if threads == 1 or len(tasks) < 2:
        for task in tasks:
            work(task)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, tasks):
            pass


def _spans(rows: int) -> list[slice]:
    return [slice(i, min(i + CHUNK, rows)) for i in range(0, rows, CHUNK)]
