"""Attacks of a feature party on the sketches of a search: coefficients, labels, scores of rows.

    python -m benchmarks.privacy.sketches

Three parties; the second has no labels and attacks with what it received in a real run and with its
own columns and directions.

- **coefficients**: the mean square of a direction's sketches against the size of its coefficient,
  and the first singular vector of all sketches against the coefficients with their signs.
- **rows**: how strongly each row's own phases go along with the sketches, as a score of its label.
- **direction**: the direction in its own columns along which f changes most, up to sign, which the
  same numbers give as relevance; its projection as a score of labels. Beside it stand the first
  principal component of the same columns, and a model that was told the labels.

Scores are judged by AUC, the better of both signs; chance is a little above one half.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks import datasets
from benchmarks.datasets import Split
from benchmarks.harness import Benchmark, arguments
from vertikal import KernelClassifier
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.relevance import STEP
from vertikal.algorithms.tuned import search
from vertikal.data.tables import Table

Array = npt.NDArray[Any]

ATTACKER = "party2"


@dataclass
class Seen:
    """Sketches and own directions of the attacker, and the coefficients they were made of."""

    sketches: list[Array] = field(default_factory=list)  # (D, R), one per round
    directions: list[Array] = field(default_factory=list)  # (own encoded columns, D)
    offsets: list[Array] = field(default_factory=list)
    coefficients: list[Array] = field(default_factory=list)  # (2D, outputs)


@contextmanager
def watching() -> Iterator[Seen]:
    """Keep what the attacker receives, and what it would like to know."""
    seen = Seen()
    learn, sketch = search.learn_relevance, search.sketch

    def learned(party: Any, shard: Any, told: dict[str, Array], harmonic: int) -> Array:
        if party.name == ATTACKER:
            (label_party,) = told
            drawn = draw_directions(shard, label_party)
            seen.sketches.append(told[label_party].astype(np.float64))
            seen.directions.append(drawn.directions * harmonic)
            seen.offsets.append(drawn.offsets * (2 * np.pi / 256) * harmonic)
        return learn(party, shard, told, harmonic)

    def sketched(operator: Any, coefficients: Array, *rest: Any) -> Array:
        seen.coefficients.append(coefficients)
        return sketch(operator, coefficients, *rest)

    with (
        mock.patch.object(search, "learn_relevance", learned),
        mock.patch.object(search, "sketch", sketched),
    ):
        yield seen


def either_sign(labels: Array, score: Array) -> float:
    auc = float(roc_auc_score(labels, score))
    return max(auc, 1 - auc)


def attack(split: Split) -> dict[str, float]:
    """Run the search on these rows and attack it."""
    with watching() as seen:
        model = KernelClassifier(3, random_state=0, missing="refuse").fit(split.X, split.y)
    shard = model.shards_[ATTACKER]
    own = np.asarray(split.X)[:, model.columns_[ATTACKER]]
    encoded = np.asarray(shard.encoding.apply(_table(shard, own)).block(slice(None)))
    sketches, directions, offsets, (true, *_) = (
        seen.sketches[0],
        seen.directions[0],
        seen.offsets[0],
        seen.coefficients,
    )
    half = len(true) // 2
    sizes = np.hypot(true[:half, 0], true[half:, 0])
    guessed = np.sqrt(np.square(sketches).mean(axis=1))
    first = np.linalg.svd(sketches, full_matrices=False)[0][:, 0]
    signed = max(abs(np.corrcoef(first, part)[0, 1]) for part in np.split(true[:, 0], 2))
    angles = encoded @ directions + offsets
    along = np.square(np.cos(angles) @ sketches).sum(axis=1)
    slopes = np.sin(directions * STEP) / STEP @ sketches  # of f along own columns
    _, vectors = np.linalg.eigh(slopes @ slopes.T)
    principal = np.linalg.svd(encoded - encoded.mean(axis=0), full_matrices=False)[2][0]
    told = LogisticRegression(max_iter=1000).fit(encoded, split.y)
    return {
        "coefficients: correlation of sizes": float(np.corrcoef(guessed, sizes)[0, 1]),
        "coefficients: correlation with signs": float(signed),
        "rows: AUC of labels": either_sign(split.y, along),
        "direction: AUC of labels": either_sign(split.y, encoded @ vectors[:, -1]),
        "direction: AUC of the principal component": either_sign(split.y, encoded @ principal),
        "direction: AUC with the labels told": either_sign(
            split.y, told.decision_function(encoded)
        ),
        "whole model: AUC": either_sign(split.y, np.asarray(model.decision_function(split.X))),
    }


def _table(shard: Any, values: Array) -> Any:

    return Table(shard.party, shard.columns, values)


def main() -> None:
    options = arguments(__doc__ or "", rows=12_000)
    run = Benchmark("privacy-sketches", {"parties": 3, "rows": options.rows})
    for load in (datasets.a9a, datasets.default_credit, datasets.ijcnn1):
        split = load().head(options.rows)
        for name, value in attack(split).items():
            run.figure(f"{split.name}: {name}", value)
        signs = run.figures[f"{split.name}: coefficients: correlation with signs"]
        run.target(f"{split.name}: correlation with signed coefficients", signs, 0.2, at_most=True)
        rows = run.figures[f"{split.name}: rows: AUC of labels"]
        run.target(f"{split.name}: AUC of labels from single rows", rows, 0.65, at_most=True)
    run.write(options.out)


if __name__ == "__main__":
    main()
