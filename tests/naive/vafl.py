"""VAFL's network in one piece, and its steps by derivatives along the imaginary axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

TINY = 1e-30


def loss(
    embeddings: Sequence[np.ndarray], head: Mapping[str, np.ndarray], targets: np.ndarray
) -> complex:
    """Mean logistic loss of rows with these embeddings, one array per party."""
    total = 0.0 + 0.0j
    for i, target in enumerate(targets):
        h = np.concatenate([one[i] for one in embeddings])
        hidden = [np.tanh(h @ head["V"][:, j] + head["c"][j]) for j in range(len(head["c"]))]
        f = sum(u * value for u, value in zip(head["u"], hidden, strict=True)) + head["d"][0]
        total += np.log(1 + np.exp(-target * f))
    return total / len(targets)


def gradient(function: Callable[[np.ndarray], complex], at: np.ndarray) -> np.ndarray:
    """The derivative of an analytic function by each entry."""
    found = np.empty(at.shape)
    for place in np.ndindex(at.shape):
        moved = at.astype(complex)
        moved[place] += TINY * 1j
        found[place] = function(moved).imag / TINY
    return found


def replay(
    order: Sequence[str],
    batches: Mapping[str, Iterator[np.ndarray]],
    columns: Mapping[str, np.ndarray],
    layers: Mapping[str, dict[str, np.ndarray]],
    head: dict[str, np.ndarray],
    targets: np.ndarray,
    *,
    server: str,
    step_size: float,
    penalty: float,
) -> None:
    """Take the steps of a run in its order; ``layers`` and ``head`` become the trained ones."""

    def embed(name: str, rows: np.ndarray, layer: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.tanh(columns[name][rows] @ layer["W"] + layer["b"])

    every = np.arange(len(targets))
    last = {name: embed(name, every, layers[name]) for name in layers}
    for sender in order:
        rows = next(batches[sender])
        last[sender][rows] = embed(sender, rows, layers[sender])

        def at(
            name: str,
            layer: Mapping[str, np.ndarray],
            head: Mapping[str, np.ndarray],
            rows: np.ndarray = rows,
        ) -> complex:
            parts = [
                embed(one, rows, layer if one == name else layers[one])
                if one in (name, server)
                else last[one][rows]
                for one in layers
            ]
            return loss(parts, head, targets[rows])

        changes = []
        for name in (server, sender):
            for key in ("W", "b"):
                slope = gradient(
                    lambda v, name=name, key=key: at(name, {**layers[name], key: v}, head),
                    layers[name][key],
                )
                changes.append((layers[name], key, slope))
        for key, value in head.items():
            slope = gradient(lambda v, key=key: at(server, layers[server], {**head, key: v}), value)
            changes.append((head, key, slope))
        for holder, key, slope in changes:
            shrinking = penalty * holder[key] if key in "WVu" else 0.0
            holder[key] = holder[key] - step_size * (slope + shrinking)
