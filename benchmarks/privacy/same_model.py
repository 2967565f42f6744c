"""The same model at every disclosure level: a9a, ijcnn1 and cod-rna, whole, 4 parties, D = 1024.

    python -m benchmarks.privacy.same_model

`values` is held against the open fit of the same loss and directions; sealed against the open
ridge, the square loss solved to tolerance on the same features.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import datasets
from benchmarks.accuracy.figures import bandwidth, scores
from benchmarks.harness import Benchmark, arguments
from vertikal import FDSKLClassifier, Values

PARTIES = 4
STEPS = 75
BITS: tuple[Literal[64, 32], ...] = (64, 32)
GAMMA = {"a9a": 0.02, "ijcnn1": 1.0, "cod-rna": 8.0}


def main() -> None:
    options = arguments(__doc__ or "", directions=1024)
    D = options.directions
    run = Benchmark(
        "privacy-same-model", {"parties": PARTIES, "D": D, "sealed steps": STEPS, "gamma": GAMMA}
    )
    for load in (datasets.a9a, datasets.ijcnn1, datasets.cod_rna):
        split = load()
        shared = {
            "n_components": D,
            "bandwidth": bandwidth(GAMMA[split.name]),
            "alpha": "auto",
            "random_state": 0,
        }

        def fit(**settings: Any) -> tuple[Any, float]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = FDSKLClassifier(PARTIES, **shared, **settings).fit(split.X, split.y)  # noqa: B023
            auc = scores(model, split)[1]  # noqa: B023
            named = ", ".join(str(value) for value in settings.values()) or "open"
            run.figure(f"{split.name}, {named}: AUC", round(auc, 5))  # noqa: B023
            return model, auc

        opened, auc = fit()
        coefficients = opened.shards_["party1"].coefficients
        for bits in BITS:
            values, found = fit(disclosure=Values(bits=bits))
            name = f"{split.name}: AUC of values below open, {bits} bits"
            run.target(name, auc - found, 0.001, at_most=True)
            gap = np.abs(values.shards_["party1"].coefficients - coefficients).max()
            run.figure(
                f"{split.name}, values, {bits} bits: largest gap of a coefficient, relative",
                float(gap / np.abs(coefficients).max()),
            )
        _, ridge = fit(loss="square")
        _, sealed = fit(loss="square", disclosure="sealed", max_iter=STEPS)
        name = f"{split.name}: AUC of sealed below the open ridge"
        run.target(name, ridge - sealed, 0.005, at_most=True)
    run.write(options.out)


if __name__ == "__main__":
    main()
