"""TSAM, AVFKAM eq. (6), in one process on pooled columns, in plain lists; with rounds, VFKAM.

f = Σ_j α_j φ_j with φ = √2·cos. Every step takes pairs of rows and a block of directions, changes
the α of these, and multiplies all earlier ones by 1 − γλ, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.naive.dsg import Alphas, rounds_of, turns
from tests.naive.pairwise import PLAIN_PAIRS
from tests.naive.phases import derive, draw_integers


def pairs_of(
    shard: Any, number: int, positives: Sequence[int], negatives: Sequence[int]
) -> list[tuple[int, int]]:
    """The pairs of one party's batch of this number, drawn again from its seed."""
    count = shard.settings.solver.batch_size
    drawn = draw_integers(derive(shard.seed, "batches", str(number)), 2 * count, 64)
    return [
        (positives[up % len(positives)], negatives[down % len(negatives)])
        for up, down in zip(drawn[:count], drawn[count:], strict=True)
    ]


def tsam(
    features: Mapping[str, np.ndarray],
    weights: Mapping[int, float] | Mapping[str, Mapping[int, float]],
    batches: Callable[[str, int], Sequence[tuple[int, int]]],
    *,
    loss: str,
    step_size: float,
    penalty: float,
    block: int,
    steps: int,
    together: bool = False,
) -> Iterator[Alphas]:
    """The coefficients after each step; ``weights`` of a row, one on average over its class.

    They may differ by label party. ``together``: after each round, in which all parties step.
    """
    owners = list(features)
    by_owner: Any = weights if owners[0] in weights else dict.fromkeys(owners, weights)
    widths = {owner: features[owner].shape[1] for owner in owners}
    alphas: Alphas = {o: [[0.0] for _ in range(widths[o])] for o in owners}
    taken = dict.fromkeys(owners, 0)
    order = turns(owners, widths, block)

    def predict(row: int) -> float:
        return sum(
            alphas[o][j][0] * float(features[o][row, j]) for o in owners for j in range(widths[o])
        )

    for members in rounds_of(order, steps, together=together):
        changes = []
        for owner, columns in members:
            pairs = batches(owner, taken[owner])
            taken[owner] += 1
            change = [0.0 for _ in columns]
            for up, down in pairs:
                _, first, second = PLAIN_PAIRS[loss](predict(up), predict(down))
                weight = by_owner[owner][up] * by_owner[owner][down] / len(pairs) / len(columns)
                for position, j in enumerate(columns):
                    phi = features[owner]
                    gradient = first * float(phi[up, j]) + second * float(phi[down, j])
                    change[position] += -step_size * weight * gradient
            changes.append((owner, columns, change))
        for _ in members:
            for o in owners:
                for j in range(widths[o]):
                    alphas[o][j][0] *= 1 - step_size * penalty
        for owner, columns, change in changes:
            for position, j in enumerate(columns):
                alphas[owner][j][0] += change[position]
        yield {o: [list(row) for row in alphas[o]] for o in owners}
