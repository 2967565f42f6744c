"""Test AUC with the bandwidth of the mean and of the median distance between rows.

    python -m benchmarks.accuracy.bandwidth

Three parties, 512 directions, 5,000 training rows drawn at random, with columns as they are in the
files and standardised by each party.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks import datasets
from benchmarks.accuracy.defaults import sampled
from benchmarks.datasets import Split
from benchmarks.harness import Benchmark, arguments
from vertikal import FDSKLClassifier

COMMON = {"parties": 3, "n_components": 512, "random_state": 0}
ROWS = 5000


def varying(split: Split) -> Split:
    """Leave out columns that are the same in all rows of a sample, which are refused."""
    keep = np.ptp(split.X, axis=0) > 0
    return Split(split.name, split.X[:, keep], split.y, split.X_test[:, keep], split.y_test)


def auc_and_bandwidth(
    split: Split, bandwidth: Literal["mean", "median"], scale: Literal["standard"] | None
) -> tuple[float, float]:
    model = FDSKLClassifier(**COMMON, bandwidth=bandwidth, scale=scale).fit(split.X, split.y)
    auc = float(roc_auc_score(split.y_test, model.decision_function(split.X_test)))
    return round(auc, 5), round(model.bandwidth_, 4)


def main() -> None:
    options = arguments(__doc__ or "")
    run = Benchmark("accuracy-bandwidth", COMMON | {"rows": ROWS, "disclosure": "open"})
    for whole in (datasets.a9a(), datasets.ijcnn1(), datasets.cod_rna(), datasets.phishing()):
        split = varying(sampled(whole, ROWS))
        for scale in (None, "standard"):
            title = f"{whole.name}, scale={scale}: AUC and bandwidth"
            mean = run.figure(f"{title}, mean", auc_and_bandwidth(split, "mean", scale))
            median = run.figure(f"{title}, median", auc_and_bandwidth(split, "median", scale))
            below = f"{whole.name}, scale={scale}: AUC of the mean below the median's"
            run.target(below, median[0] - mean[0], 0.01, at_most=True)
    run.write(options.out)


if __name__ == "__main__":
    main()
