"""KOMD, the quadratic programme of CF-KOMD, for many users at once.

    minimise over a in the simplex   ½ aᵀ(K_pp + λI)a − q_pᵀa

one programme per user over its own positive items p. Programmes of similar size are solved side by
side by accelerated projected gradients, with a restart wherever progress turns, until the
Frank–Wolfe gap gᵀa − min g, which bounds the distance to the optimum, is small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_CELLS = 1 << 22
_ROUNDS = 5000


def komd(
    kernel: Array, means: Array, positives: list[Array], penalty: float, tolerance: float = 1e-6
) -> list[Array]:
    """The weights of each user's positive items; ``positives`` are item numbers, one list a user.

    ``kernel`` (items, items) and ``means`` (items,), its row means q. A user without positive
    items gets an empty vector.
    """
    answers: list[Array] = [np.zeros(0)] * len(positives)
    order = sorted(
        (u for u in range(len(positives)) if len(positives[u])), key=lambda u: len(positives[u])
    )
    while order:
        size = len(positives[order[-1]])
        together = max(1, _CELLS // size**2)
        batch, order = order[-together:], order[:-together]
        gathered = np.zeros((len(batch), size, size))
        linear = np.zeros((len(batch), size))
        there = np.zeros((len(batch), size), bool)
        for row, user in enumerate(batch):
            p = positives[user]
            gathered[row, : len(p), : len(p)] = kernel[np.ix_(p, p)]
            linear[row, : len(p)] = means[p]
            there[row, : len(p)] = True
        solved = solve_on_simplex(gathered, linear, there, penalty, tolerance)
        for row, user in enumerate(batch):
            answers[user] = solved[row, : len(positives[user])]
    return answers


def solve_on_simplex(
    K: Array, q: Array, there: Array, penalty: float, tolerance: float = 1e-6
) -> Array:
    """a (users, size) of minimal ½ aᵀ(K + λI)a − qᵀa, aᵢ ≥ 0, Σa = 1, zero where not ``there``."""
    a = there / there.sum(axis=1, keepdims=True)
    # The largest row sum bounds the largest eigenvalue.
    step = 1.0 / (np.abs(K).sum(axis=2).max(axis=1) + penalty)[:, None]
    ahead, momentum = a.copy(), np.ones((len(a), 1))
    for _ in range(_ROUNDS):
        g = np.einsum("uij,uj->ui", K, ahead) + penalty * ahead - q
        moved = project(ahead - step * g, there)
        # Where the step points back against the last one, momentum has overshot.
        against = ((ahead - moved) * (moved - a)).sum(axis=1, keepdims=True) > 0
        grown = np.where(against, 1.0, (1 + np.sqrt(1 + 4 * momentum**2)) / 2)
        ahead = moved + np.where(against, 0.0, (momentum - 1) / grown) * (moved - a)
        momentum, a = grown, moved
        g = np.einsum("uij,uj->ui", K, a) + penalty * a - q
        gap = (g * a).sum(axis=1) - np.where(there, g, np.inf).min(axis=1)
        if (gap <= tolerance).all():
            break
    return np.asarray(a)


def project(v: Array, there: Array) -> Array:
    """The nearest points of the simplex, row by row, over the entries that are ``there``."""
    low = np.where(there, v, -np.inf)
    ordered = -np.sort(-low, axis=1)
    finite = np.where(np.isfinite(ordered), ordered, 0.0)
    surplus = np.cumsum(finite, axis=1) - 1.0
    count = np.arange(1, v.shape[1] + 1)
    used = (ordered * count > surplus).sum(axis=1, keepdims=True)
    level = np.take_along_axis(surplus, used - 1, axis=1) / used
    return np.asarray(np.where(there, np.maximum(v - level, 0.0), 0.0))
