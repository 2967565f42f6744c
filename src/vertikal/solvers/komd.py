"""KOMD: the quadratic programme of CF-KOMD for many users at once, and the one of two classes.

    minimise over a in the simplex   ½ aᵀ(K_pp + λI)a − q_pᵀa

one programme per user over its own positive items p. Programmes of similar size are solved side by
side by accelerated projected gradients, with a restart wherever progress turns, until the
Frank–Wolfe gap gᵀa − min g, which bounds the distance to the optimum, is small.

`separate` is KOMD itself (Aiolli, Da San Martino and Sperduti 2008): the two points, one in the
hull of each class, that are nearest to one another.
"""

from __future__ import annotations

from collections.abc import Callable
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
    answers = np.zeros(there.shape)
    left = np.arange(len(there))
    a = there / there.sum(axis=1, keepdims=True)
    Ka = _products(K, a)
    # The largest row sum bounds the largest eigenvalue.
    step = 1.0 / (np.abs(K).sum(axis=2).max(axis=1) + penalty)[:, None]
    ahead, K_ahead, momentum = a, Ka, np.ones((len(a), 1))
    for _ in range(_ROUNDS):
        moved = project(ahead - step * (K_ahead + penalty * ahead - q), there)
        # Where the step points back against the last one, momentum has overshot.
        against = ((ahead - moved) * (moved - a)).sum(axis=1, keepdims=True) > 0
        grown = np.where(against, 1.0, (1 + np.sqrt(1 + 4 * momentum**2)) / 2)
        beta = np.where(against, 0.0, (momentum - 1) / grown)
        # One product a round: that of the point ahead is linear in those of the last two points.
        K_moved = _products(K, moved)
        ahead, K_ahead = moved + beta * (moved - a), K_moved + beta * (K_moved - Ka)
        momentum, a, Ka = grown, moved, K_moved
        g = Ka + penalty * a - q
        gap = (g * a).sum(axis=1) - np.where(there, g, np.inf).min(axis=1)
        open_ = gap > tolerance
        answers[left] = a
        if 2 * open_.sum() <= len(left):  # those who are done hold the others up no longer
            if not open_.any():
                break
            left, K, q, there = left[open_], K[open_], q[open_], there[open_]
            a, Ka, ahead, K_ahead = a[open_], Ka[open_], ahead[open_], K_ahead[open_]
            step, momentum = step[open_], momentum[open_]
    return answers


def separate(
    product: Callable[[Array], Array],
    largest: float,
    signs: Array,
    penalties: Array,
    tolerance: float = 1e-6,
) -> Array:
    """γ (rows,) of minimal ½ γᵀ(YKY + Λ)γ, γ ≥ 0, which sums to 1 over each of two classes.

    ``product`` multiplies K with a vector, ``largest`` bounds the eigenvalues of K, ``signs`` are
    the classes −1 and 1, and ``penalties`` the diagonal of Λ: the larger they are, the more rows
    share the weight of a class. The gap at the end is at most ``tolerance`` of the value.
    """
    classes = np.stack((signs > 0, signs < 0))
    a = (classes / classes.sum(axis=1, keepdims=True)).sum(axis=0)
    Ka = product(signs * a) * signs
    step = 1.0 / (largest + penalties.max(initial=0.0))
    ahead, K_ahead, momentum = a, Ka, 1.0
    for _ in range(_ROUNDS):
        target = ahead - step * (K_ahead + penalties * ahead)
        moved = project(np.stack((target, target)), classes).sum(axis=0)
        # As in `solve_on_simplex`: momentum begins anew where it has overshot.
        against = (ahead - moved) @ (moved - a) > 0
        grown = 1.0 if against else (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        beta = 0.0 if against else (momentum - 1) / grown
        K_moved = product(signs * moved) * signs
        ahead, K_ahead = moved + beta * (moved - a), K_moved + beta * (K_moved - Ka)
        momentum, a, Ka = grown, moved, K_moved
        g = Ka + penalties * a
        gap = g @ a - g[classes[0]].min() - g[classes[1]].min()
        if gap <= tolerance * (g @ a):
            break
    return np.asarray(a)


def _products(K: Array, a: Array) -> Array:
    """K·a for each user."""
    return np.asarray(np.matmul(K, a[:, :, None])[:, :, 0])


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
