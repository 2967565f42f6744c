"""The two classes of Fashion-MNIST that one band of the picture tells apart worst.

    python -m benchmarks.papers.admm.pairs

The pair for `problems.fashion`, chosen on training rows alone: for each pair and each band, least
squares on three quarters of the training rows, and how often it errs on the last quarter. The
least of the three errors is what the best of the parties can do by itself.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm.problems import BANDS, with_ones
from benchmarks.papers.admm.rounds import Array

CLASSES = (
    "T-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "boot",
)
RIDGE = 1.0


def main() -> None:
    options = arguments(__doc__ or "")
    run = Benchmark("papers-admm-pairs", {"ridge": RIDGE, "bands": "9, 10 and 9 lines"})
    X, labels = datasets.pictures("train")
    found = {}
    for pair in combinations(range(10), 2):
        rows = np.isin(labels, pair)
        y = np.where(labels[rows] == pair[0], 1.0, -1.0)
        errors = [error(X[rows][:, band], y) for band in BANDS]
        found[" and ".join(CLASSES[label] for label in pair)] = errors
    for name in sorted(found, key=lambda name: -min(found[name]))[:5]:
        run.figure(f"{name}: error of each band", found[name])
    run.write(options.out)


def error(X: Array, y: Array) -> float:
    """Of least squares, on every fourth row, which it does not see."""
    D, held = with_ones(X), np.arange(len(y)) % 4 == 0
    seen = D[~held]
    gram = seen.T @ seen + RIDGE * np.eye(D.shape[1])
    f = D[held] @ np.linalg.solve(gram, seen.T @ y[~held])
    return float(((f > 0) != (y[held] > 0)).mean())


if __name__ == "__main__":
    main()
