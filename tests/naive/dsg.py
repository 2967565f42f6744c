"""FDSKL eq. (7) and Algorithm 1 in one process on pooled columns, in plain lists.

f = Σ_j α_j φ_j with φ = √2·cos. Every step changes the α of its own directions and multiplies all
earlier ones by 1 − γλ, one by one. A block of F directions averages F such estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tests.naive.losses import PLAIN

Alphas = dict[str, list[list[float]]]


def turns(
    label_parties: Sequence[str], widths: Mapping[str, int], block: int
) -> list[tuple[str, range]]:
    """(label party, its directions) of one pass: parties in turn, each direction once."""
    rounds = max(-(-width // block) for width in widths.values())
    return [
        (owner, range(start, min(start + block, widths[owner])))
        for start in range(0, rounds * block, block)
        for owner in label_parties
        if start < widths[owner]
    ]


def rounds_of(
    order: Sequence[tuple[str, range]], steps: int, *, together: bool
) -> list[list[tuple[str, range]]]:
    """The steps one by one; or ``together``, each party once in a round, before a barrier."""
    found: list[list[tuple[str, range]]] = []
    for step in range(steps):
        one = order[step % len(order)]
        if together and found and one[0] not in [owner for owner, _ in found[-1]]:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def dsg(
    features: Mapping[str, np.ndarray],
    targets: np.ndarray,
    weights: Sequence[float] | Mapping[str, Sequence[float]],
    batches: Callable[[str, int], Sequence[int]],
    *,
    loss: str,
    step_size: float,
    penalty: float,
    block: int,
    steps: int,
    together: bool = False,
) -> Iterator[Alphas]:
    """The coefficients after each step, or each round if parties step ``together``.

    ``features`` (rows, width) = φ by label party, ``batches(owner, n)`` the rows of its n-th batch.
    ``weights`` of rows, of which the mean counts as one; or by label party, as they are.
    """
    owners = list(features)
    widths = {owner: features[owner].shape[1] for owner in owners}
    outputs = targets.shape[1]
    if not isinstance(weights, Mapping):
        mean_weight = sum(weights) / len(weights)
        shares = [weight / mean_weight for weight in weights]
        weights = {owner: shares for owner in owners}
    alphas: Alphas = {o: [[0.0] * outputs for _ in range(widths[o])] for o in owners}
    taken = dict.fromkeys(owners, 0)
    order = turns(owners, widths, block)
    for members in rounds_of(order, steps, together=together):
        changes = []
        for owner, columns in members:
            rows = batches(owner, taken[owner])
            taken[owner] += 1
            change = [[0.0] * outputs for _ in columns]
            for i in rows:
                for k in range(outputs):
                    f = 0.0
                    for o in owners:
                        for j in range(widths[o]):
                            f += alphas[o][j][k] * float(features[o][i, j])
                    _, slope = PLAIN[loss](f, float(targets[i, k]))
                    slope *= weights[owner][i]
                    for position, j in enumerate(columns):
                        phi = float(features[owner][i, j])
                        change[position][k] += -step_size * slope * phi / len(rows) / len(columns)
            changes.append((owner, columns, change))
        for _ in members:
            for o in owners:
                for j in range(widths[o]):
                    for k in range(outputs):
                        alphas[o][j][k] *= 1 - step_size * penalty
        for owner, columns, change in changes:
            for position, j in enumerate(columns):
                for k in range(outputs):
                    alphas[owner][j][k] += change[position][k]
        yield {o: [list(row) for row in alphas[o]] for o in owners}
