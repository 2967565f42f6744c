"""Landmarks on ijcnn1 (γ = 2, four parties) against SVC, in one run.

python -m benchmarks.accuracy.landmarks --more 4096
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments, seconds
from vertikal import FDSKLClassifier

SETTINGS = {"parties": 4, "feature_map": "landmarks", "bandwidth": 0.5, "penalty": 3e-7}


def main() -> None:
    options = arguments(__doc__ or "", more=0, tolerance=1e-2)
    run = Benchmark("accuracy-landmarks", SETTINGS | {"tolerance": options.tolerance, "seed": 0})
    split = datasets.ijcnn1()
    svc = SVC(C=32, gamma=2)
    theirs = run.figure(
        "SVC(C=32, gamma=2): seconds to fit", seconds(lambda: svc.fit(split.X, split.y))
    )
    cases = [(2048, 16), (2048, 32)] + ([(options.more, 16)] if options.more else [])
    for landmarks, bits in cases:
        model = FDSKLClassifier(
            **SETTINGS,
            n_directions=landmarks,
            ring_bits=bits,
            tolerance=options.tolerance,
            random_state=0,
        )
        name = f"{landmarks} landmarks, {bits} bits"
        took = run.figure(
            f"{name}: seconds to fit", seconds(lambda m=model: m.fit(split.X, split.y))
        )
        values = model.decision_function(split.X_test)
        error = run.figure(f"{name}: error", float(np.mean((values > 0) != (split.y_test > 0))))
        auc = run.figure(f"{name}: AUC", float(roc_auc_score(split.y_test, values)))
        if landmarks == 2048:
            run.target(f"{name}: error", error, 0.0135, at_most=True)
            run.target(f"{name}: seconds, against SVC's", took, theirs, at_most=True)
        if landmarks == 4096:
            run.target(f"{name}: error", error, 0.0115, at_most=True)
            run.target(f"{name}: AUC", auc, 0.997, at_most=False)
    run.write(options.out)


if __name__ == "__main__":
    main()
