"""An attack on linear mixtures without statistics: yes-or-no columns in a column space.

Whoever holds linear mixtures of hidden columns holds the space they span, and a column of zeros and
ones is a vector of that space with two values only. There are few such vectors. Starting somewhere
in the space, setting each entry to the nearer of two values and projecting back onto the space, in
turn, ends at one of them or at none; which of the two shows in how much of the rounded vector lies
outside. Components that are nearly independent are good places to start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError

Array = npt.NDArray[Any]

OUTSIDE = 0.05
"""Share of a found column's variance that may lie outside the space, for rounding."""

_ROUNDS = 60
_RARE = 1e-3
_ALIKE = 0.98
_BATCH = 64


def binary_columns(
    scores: Array, starts: Array | None = None, *, tries: int = 256, random_state: int = 0
) -> Array:
    """Vectors of zeros and ones (rows, found) in the space of ``scores`` (rows, rank).

    ``scores`` are uncorrelated, of mean 0 and variance 1. ``starts`` (rows, any) are tried besides
    ``tries`` random directions of the space.
    """
    if scores.ndim != 2:
        raise InputError.of("scores", "two-dimensional", scores.shape)
    rows, rank = scores.shape
    if rank == 0:
        return np.empty((rows, 0))
    generator = np.random.default_rng(random_state)
    first = scores @ generator.normal(size=(rank, tries))
    if starts is not None:
        first = np.concatenate((starts, first), axis=1)
    found = [_settle(scores, first[:, i : i + _BATCH]) for i in range(0, first.shape[1], _BATCH)]
    return _distinct(np.concatenate(found, axis=1))


def _settle(scores: Array, points: Array) -> Array:
    """The columns of zeros and ones that rounding and projecting ends at (rows, found)."""
    bits = _rounded(points)
    moving = np.arange(points.shape[1])
    for _ in range(_ROUNDS):
        before = bits[:, moving]
        following = _rounded(_projected(scores, before))
        bits[:, moving] = following
        moving = moving[(following != before).any(axis=0)]
        if not moving.size:
            break
    mean = bits.mean(axis=0)
    spread = mean * (1 - mean)
    outside = np.square(bits - _projected(scores, bits)).mean(axis=0)
    good = (spread > _RARE) & (outside < OUTSIDE * spread)
    return np.asarray(bits[:, good])


def _projected(scores: Array, bits: Array) -> Array:
    """Onto the space of the scores and the constant."""
    return np.asarray(scores @ (scores.T @ bits / len(scores)) + bits.mean(axis=0))


def _rounded(points: Array) -> Array:
    """Each entry as 0 or 1, by the midpoint between the means of the two halves it makes."""
    cut = (points.max(axis=0) + points.min(axis=0)) / 2
    for _ in range(4):
        above = points > cut
        many = np.maximum(above.sum(axis=0), 1)
        few = np.maximum((~above).sum(axis=0), 1)
        high = np.where(above, points, 0).sum(axis=0) / many
        low = np.where(above, 0, points).sum(axis=0) / few
        cut = (high + low) / 2
    return np.asarray(points > cut, np.float64)


def _distinct(columns: Array) -> Array:
    """Each column once, whichever way round."""
    kept: list[int] = []
    centred = columns - columns.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=0), 1e-300)
    for i in range(columns.shape[1]):
        if all(abs(float(centred[:, i] @ centred[:, j])) < _ALIKE for j in kept):
            kept.append(i)
    return columns[:, kept]
