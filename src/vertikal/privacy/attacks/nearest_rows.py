"""Nearest-row matching: an attack that finds whose row it is, from a list of candidates.

The attacker has the hidden columns of some people from elsewhere (a list of candidates), and knows
of a few of them, the anchors, which row is theirs. From the anchors it learns, by ridge regression,
what numbers a record gives rise to; then it assigns to each other row the candidate whose expected
numbers are nearest, each direction counting as much as the anchors say that it can be trusted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError

Array = npt.NDArray[Any]

_FOLDS = 5
_RIDGES = (1e-3, 1e-1, 10.0, 1e3)


def nearest_rows(held: Array, records: Array, anchor_rows: Array, anchor_records: Array) -> Array:
    """For each row, the number of the candidate it is matched with, (rows,).

    ``held`` (rows, k) is what the attacker has of each row, ``records`` (candidates, columns) the
    list; row ``anchor_rows[i]`` is known to be candidate ``anchor_records[i]``'s.
    """
    if len(anchor_rows) != len(anchor_records) or len(anchor_rows) < 2 * _FOLDS:
        raise InputError.of("anchors", f"pairs, {2 * _FOLDS} at least", len(anchor_rows))
    if not held.shape[1]:
        return np.zeros(len(held), np.int64)
    known, seen = records[anchor_records], held[anchor_rows]
    centre, spread = known.mean(axis=0), known.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    known, listed = (known - centre) / spread, (records - centre) / spread
    mean = seen.mean(axis=0)
    ridge, errors = _chosen(known, seen - mean)
    expected = listed @ _fitted(known, seen - mean, ridge) + mean
    # What anchors cannot foretell says nothing; what they foretell well counts.
    trust = 1 / np.sqrt(np.maximum(errors, 1e-12 * float(errors.max(initial=1.0))))
    return _nearest(held * trust, expected * trust)


def right_matches(matches: Array, records: Array, truth: Array) -> float:
    """The share of rows whose match has the same record as their own candidate ``truth``."""
    return float((records[matches] == records[truth]).all(axis=1).mean())


def _chosen(known: Array, seen: Array) -> tuple[float, Array]:
    """The ridge with the least error on anchors left out, and that error by number (k,)."""
    folds = np.arange(len(known)) % _FOLDS
    variance = np.maximum(seen.var(axis=0), 1e-300)
    errors = {}
    for ridge in _RIDGES:
        error = np.zeros(seen.shape[1])
        for fold in range(_FOLDS):
            inside, outside = folds != fold, folds == fold
            weights = _fitted(known[inside], seen[inside], ridge)
            error += np.square(known[outside] @ weights - seen[outside]).sum(axis=0)
        errors[ridge] = error / len(known)
    best = min(errors, key=lambda ridge: float((errors[ridge] / variance).mean()))
    return best, errors[best]


def _fitted(known: Array, seen: Array, ridge: float) -> Array:
    gram = known.T @ known
    np.einsum("ii->i", gram)[:] += ridge
    return np.asarray(np.linalg.solve(gram, known.T @ seen))


def _nearest(points: Array, candidates: Array) -> Array:
    """The number of the nearest candidate of each point."""
    squares = np.square(candidates).sum(axis=1)
    chosen = np.empty(len(points), np.int64)
    for start in range(0, len(points), 1024):
        part = points[start : start + 1024]
        chosen[start : start + 1024] = np.argmin(squares - 2 * part @ candidates.T, axis=1)
    return chosen
