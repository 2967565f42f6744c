"""Gradient-boosted trees on pooled columns, by trying every split in plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def edges_of(column: np.ndarray, bins: int) -> list[float]:
    """Cell values at the shares 1/bins, 2/bins, …, each once."""
    ordered = sorted(column.tolist())
    return sorted({ordered[math.floor((len(ordered) - 1) * k / bins)] for k in range(1, bins)})


def grow(
    X: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    rows: list[int],
    depth: int,
    edges: list[list[float]],
    penalty: float,
    min_gain: float,
) -> Any:
    """A leaf's weight, or (column, edge, left, right)."""

    def value(some: list[int]) -> float:
        return sum(g[i] for i in some) ** 2 / (sum(h[i] for i in some) + penalty)

    weight = -sum(g[i] for i in rows) / (sum(h[i] for i in rows) + penalty)
    if depth == 0 or len(rows) < 2:
        return weight
    best = (min_gain, None, None)
    for column in range(X.shape[1]):
        for edge in edges[column]:
            left = [i for i in rows if X[i, column] <= edge]
            right = [i for i in rows if X[i, column] > edge]
            gain = 0.5 * (value(left) + value(right) - value(rows))
            if gain > best[0] + 1e-9:
                best = (gain, column, edge)
    _, column, edge = best
    if column is None:
        return weight
    sides = [[i for i in rows if (X[i, column] <= edge) == side] for side in (True, False)]
    left, right = (grow(X, g, h, some, depth - 1, edges, penalty, min_gain) for some in sides)
    return column, edge, left, right


def walk(tree: Any, row: np.ndarray) -> float:
    while isinstance(tree, tuple):
        column, edge, left, right = tree
        tree = left if row[column] <= edge else right
    return float(tree)


def boost(
    X: np.ndarray,
    y: np.ndarray,
    *,
    n_trees: int,
    depth: int,
    learning_rate: float,
    bins: int,
    penalty: float,
    min_gain: float,
) -> Any:
    """A function of rows that gives their log-odds."""
    edges = [edges_of(column, bins) for column in X.T]
    share = y.mean()
    constant = math.log(share / (1 - share))
    f = np.full(len(y), constant)
    trees = []
    for _ in range(n_trees):
        p = 1 / (1 + np.exp(-f))
        tree = grow(X, p - y, p * (1 - p), list(range(len(y))), depth, edges, penalty, min_gain)
        trees.append(tree)
        f = f + learning_rate * np.array([walk(tree, row) for row in X])
    return lambda rows: np.array(
        [constant + learning_rate * sum(walk(tree, row) for tree in trees) for row in rows]
    )
