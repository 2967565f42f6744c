"""Steps of the linear baselines in plain loops, and quasi-Newton directions by a dense matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tests.naive.losses import PLAIN


def svrg(
    X: np.ndarray,
    targets: np.ndarray,
    batches: Callable[[int], Sequence[int]],
    *,
    step_size: float,
    penalty: float,
    epochs: int,
    rounds: int,
) -> np.ndarray:
    """w after all epochs of ``rounds`` inner steps each, from w = 0."""
    w = np.zeros(X.shape[1])
    number = 0

    def gradient(rows: Sequence[int], at: np.ndarray) -> np.ndarray:
        total = penalty * at
        for i in rows:
            slope = PLAIN["logistic"](float(X[i] @ at), float(targets[i]))[1]
            total = total + slope * X[i] / len(rows)
        return total

    for _ in range(epochs):
        before = w.copy()
        full = gradient(range(len(X)), before)
        for _ in range(rounds):
            rows = batches(number)
            number += 1
            w = w - step_size * (gradient(rows, w) - gradient(rows, before) + full)
    return w


def bfgs_inverse(pairs: Sequence[tuple[np.ndarray, np.ndarray]], width: int) -> np.ndarray:
    """H after these pairs (s, y), from the multiple of I that the last pair gives."""
    s, y = (part[:, 0] for part in pairs[-1])
    H = np.eye(width) * (s @ y) / (y @ y)
    for step, change in pairs:
        s, y = step[:, 0], change[:, 0]
        left = np.eye(width) - np.outer(s, y) / (s @ y)
        H = left @ H @ left.T + np.outer(s, s) / (s @ y)
    return H


def block_gradient(
    X: np.ndarray,
    targets: np.ndarray,
    rows: Sequence[int],
    f: Sequence[float],
    w: np.ndarray,
    penalty: float,
) -> np.ndarray:
    """The gradient in one party's weights: its columns X of a batch, the joint predictions f."""
    total = penalty * w
    for i, value in zip(rows, f, strict=True):
        total = total + PLAIN["logistic"](float(value), float(targets[i]))[1] * X[i] / len(rows)
    return total


def block_turn(
    X: np.ndarray, rows: Sequence[int], f: Sequence[float], moved: np.ndarray, penalty: float
) -> np.ndarray:
    """The change of that gradient along ``moved``: the Hessian of the batch in its block."""
    total = penalty * moved
    for i, value in zip(rows, f, strict=True):
        p = 1 / (1 + math.exp(-value))
        total = total + p * (1 - p) * (X[i] @ moved) * X[i] / len(rows)
    return total
