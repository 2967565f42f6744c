"""FDSKLClassifier with its defaults against SVC with its own, on standardised columns.

    python -m benchmarks.accuracy.defaults

ijcnn1 is cut to 10,000 rows, drawn at random. Its first 10,000 rows are shown too: the file is a
time series, and there the two methods extrapolate differently.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks import datasets
from benchmarks.datasets import Split
from benchmarks.harness import Benchmark, arguments
from vertikal import FDSKLClassifier


def auc(model: object, split: Split) -> float:
    pipeline = make_pipeline(StandardScaler(), model).fit(split.X, split.y)
    return float(roc_auc_score(split.y_test, pipeline.decision_function(split.X_test)))


def sampled(split: Split, rows: int) -> Split:
    chosen = np.random.default_rng(0).choice(len(split.y), rows, replace=False)
    return Split(split.name, split.X[chosen], split.y[chosen], split.X_test, split.y_test)


def main() -> None:
    options = arguments(__doc__ or "")
    run = Benchmark(
        "accuracy-defaults", {"FDSKLClassifier": "defaults, seeds 0 to 2", "SVC": "defaults"}
    )
    ijcnn1 = datasets.ijcnn1()
    for split in (
        datasets.phishing(),
        sampled(ijcnn1, 10_000),
        datasets.cod_rna(),
        datasets.default_credit(),
        datasets.a9a(),
    ):
        theirs = run.figure(f"{split.name}: SVC's AUC", auc(SVC(), split))
        ours = [auc(FDSKLClassifier(random_state=seed), split) for seed in range(3)]
        run.figure(f"{split.name}: FDSKLClassifier's AUC, three seeds", ours)
        run.target(
            f"{split.name}: AUC below SVC's, worst seed", theirs - min(ours), 0.01, at_most=True
        )
    head = ijcnn1.head(10_000)
    run.figure("ijcnn1, first 10,000 rows: SVC's AUC", auc(SVC(), head))
    run.figure("ijcnn1, first 10,000 rows: ours", auc(FDSKLClassifier(random_state=0), head))
    run.write(options.out)


if __name__ == "__main__":
    main()
