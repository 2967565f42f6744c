"""AVFKAM Table 3: test AUC of our AVFKAM and FDSKL, stochastic and exact, beside the published.

    python -m benchmarks.papers.avfkam.table3
    python -m benchmarks.papers.avfkam.table3 --data a9a,shuttle

8 parties, 4 of them label parties, in one process; random splits of 80 % to 20 % (`data.py` says
what each data set is). "dsg" is the published rule in blocks, asynchronous for AVFKAM; "exact" the
regularised problem on all pairs. One file per data set, so that they can be run one by one; what is
not in the data folder is listed and left out.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.avfkam.data import FILES, PARTS, Rows, missing, rows_of
from benchmarks.papers.avfkam.published import published
from benchmarks.papers.avfkam.settings import DSG, EXACT, FEW_SPLITS, SPLITS, TARGETS
from benchmarks.papers.sets import at_hand
from vertikal import AVFKAMClassifier, FDSKLClassifier
from vertikal.reporting.bar_chart import bar_chart

SHARED = ("n_components", "bandwidth")
METHODS = ("AVFKAM", "FDSKL")


def main() -> None:
    options = arguments(__doc__ or "", data="", splits=0)
    for data in at_hand(options.data, FILES, missing()):
        splits = options.splits or SPLITS.get(data, FEW_SPLITS)
        run = Benchmark(
            f"papers-avfkam-table3-{data}",
            {"part": PARTS.get(data, "all"), "parties": 8, "label parties": 4, "splits": splits}
            | {"dsg": DSG[data], "exact": EXACT[data]},
        )
        scores: dict[str, list[float]] = {}
        for seed in range(splits):
            rows = rows_of(data, seed)
            for name, model in models(data, seed).items():
                began = time.perf_counter()
                scores.setdefault(name, []).append(auc(model, rows))
                run.figures[f"{name}: seconds, last split"] = time.perf_counter() - began
        for name, values in scores.items():
            run.figure(f"{data}: {name}: test AUC, mean", float(np.mean(values)))
            run.figure(f"{data}: {name}: standard deviation", float(np.std(values)))
            run.figures[f"{name}: by split"] = values
        for method in METHODS:
            run.figure(f"{data}: {method} as published", published(method, data))
        for name, limit in TARGETS.get(data, {}).items():
            run.target(
                f"{data}: {name}: test AUC", float(np.mean(scores[name])), limit, at_most=False
            )
        run.write(options.out)
        run.draw(options.out, chart(data, scores))


def models(data: str, seed: int) -> dict[str, Any]:
    given = {"parties": 8, "label_parties": 4, "random_state": seed}
    shared = {name: EXACT[data][name] for name in SHARED}
    return {
        "AVFKAM dsg": AVFKAMClassifier(**given, **DSG[data]),
        "AVFKAM exact": AVFKAMClassifier(**given, **EXACT[data]),
        "FDSKL dsg": FDSKLClassifier(**given, **_pointwise(DSG[data])),
        "FDSKL exact": FDSKLClassifier(**given, **shared),
    }


def _pointwise(settings: dict[str, Any]) -> dict[str, Any]:
    """The same run with a pointwise loss; its step is FDSKL's automatic one."""
    kept = {name: value for name, value in settings.items() if name != "validation"}
    return kept | {"solver": settings["solver"] | {"step_size": "auto"}}


def auc(model: Any, rows: Rows) -> float:
    model.fit(rows.X, rows.y)
    return float(roc_auc_score(rows.y_test, model.decision_function(rows.X_test)))


def chart(data: str, scores: dict[str, list[float]]) -> str:
    bars = {name: float(np.mean(values)) for name, values in scores.items()}
    bars |= {f"{method} published": published(method, data) or 0.0 for method in METHODS}
    return bar_chart(
        {name: {"test AUC": value} for name, value in bars.items()},
        title=f"{data}: test AUC",
        value_text=lambda value: f"{value:.4f}",
        width=720,
    )


if __name__ == "__main__":
    main()
