"""AVFKAM Tables 3 and 4 whole: test AUC of the methods that the paper compares with.

    python -m benchmarks.papers.avfkam.rivals
    python -m benchmarks.papers.avfkam.rivals --data a9a --rows 3000 --splits 1

Table 3: TSAM, Sparse Kernel AUC, RankSVM on Fourier and Nyström features, FDSKL, AVFKAM. Table 4:
VAFL, AFSGD-VP, AsySQN, FDML and AVFKAM. 8 parties, 4 of them label parties (linear methods: all,
VAFL: one). The steps of Table 4's rivals are chosen by the AUC of a quarter of the training rows of
the first split; the settings of the others are those of `settings`. One file per data set; what is
not in the data folder is listed and left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.avfkam.data import FILES, PARTS, Rows, missing, rows_of
from benchmarks.papers.avfkam.published import published, whole
from benchmarks.papers.avfkam.settings import DSG, bandwidth_of
from benchmarks.papers.avfkam.table3 import auc
from benchmarks.papers.sets import at_hand
from benchmarks.papers.step_sizes import chosen_step
from vertikal import AVFKAMClassifier, FDSKLClassifier
from vertikal.baselines.doubly_stochastic import TSAMClassifier
from vertikal.baselines.ranking import RankSVMClassifier, SparseKernelAUCClassifier
from vertikal.estimators.baselines import (
    AFSGDVPClassifier,
    AsySQNClassifier,
    FDMLClassifier,
    VAFLClassifier,
)
from vertikal.reporting.bar_chart import bar_chart

STEP_SIZES = {
    "VAFL": (0.005, 0.02, 0.1, 0.5),
    "AFSGD-VP": (0.1, 1.0, 10.0),
    "AsySQN": (0.001, 0.01, 0.1, 1.0),
    "FDML": (0.1, 1.0, 10.0),
}
"""Steps that are tried, within the paper's range."""


def main() -> None:
    options = arguments(__doc__ or "", data="", splits=3, rows=0, steps=400, components=1024)
    for data in at_hand(options.data, FILES, missing()):
        study(data, options)


def study(data: str, options: Any) -> None:
    """All methods on one data set."""
    run = Benchmark(
        f"papers-avfkam-rivals-{data}",
        vars(options)
        | {"out": "", "data": data, "part": PARTS.get(data, "all")}
        | {"parties": 8, "label parties": 4},
    )
    scores: dict[str, list[float]] = {}
    times: dict[str, float] = {}
    chosen: dict[str, float] = {}
    for seed in range(options.splits):
        rows = rows_of(data, seed, options.rows or None)
        if seed == 0:
            run.figure(f"{data}: training rows", len(rows.y))
            chosen = chosen_steps(run, rows, options)
        given = models(data, seed, options) | table4(seed, options, chosen)
        for method, model in given.items():
            began = time.perf_counter()
            scores.setdefault(method, []).append(auc(model, rows))
            times[method] = time.perf_counter() - began
    for method, found in scores.items():
        run.figure(f"{data}: {method}: test AUC, mean", float(np.mean(found)))
        run.figure(f"{data}: {method}: standard deviation", float(np.std(found)))
        run.figures[f"{method}: by split"] = found
        run.figures[f"{method}: seconds, last split"] = times[method]
        theirs = published(method, data)
        if theirs is not None:
            run.figure(f"{data}: {method}: as published for {whole(data)}", theirs)
    run.write(options.out)
    run.draw(options.out, chart(data, scores))


def models(data: str, seed: int, options: Any) -> dict[str, Any]:
    bandwidth = bandwidth_of(data)
    gamma = 1 / (2 * bandwidth**2)
    ranking = {"gamma": gamma, "alpha": 1e-4, "random_state": seed}
    federated = {"parties": 8, "label_parties": 4, "random_state": seed}
    settings = dict(DSG[data], n_components=options.components)
    settings["solver"] = settings["solver"] | {"n_steps": options.steps}
    pointwise = {name: value for name, value in settings.items() if name != "validation"}
    pointwise["solver"] = settings["solver"] | {"step_size": "auto"}
    return {
        "TSAM": TSAMClassifier(
            bandwidth=bandwidth,
            n_components=options.components,
            alpha=1e-5,
            step_size=2.0,
            n_steps=options.steps,
            batch_size=512,
            block_size=256,
            random_state=seed,
        ),
        "Sparse Kernel AUC": SparseKernelAUCClassifier(**ranking),
        "RankSVM, Fourier": RankSVMClassifier(**ranking),
        "RankSVM, Nyström": RankSVMClassifier(**ranking, approximation="nystroem"),
        "FDSKL": FDSKLClassifier(**federated, **pointwise),
        "AVFKAM": AVFKAMClassifier(**federated, **settings),
    }


def chosen_steps(run: Benchmark, rows: Rows, options: Any) -> dict[str, float]:
    """Find the step of each of Table 4's rivals with the highest AUC on held-back training rows."""
    X, X_held, y, y_held = train_test_split(
        rows.X, rows.y, test_size=0.25, random_state=0, stratify=rows.y
    )
    held_back = Rows(X, y, X_held, y_held)
    return {
        method: chosen_step(
            run,
            method,
            sizes,
            lambda size, method=method: table4(0, options, {method: size})[method],
            lambda model: auc(model, held_back),
        )
        for method, sizes in STEP_SIZES.items()
    }


def table4(seed: int, options: Any, chosen: Mapping[str, float]) -> dict[str, Any]:
    """Return the methods of Table 4 whose step is chosen; all take as many steps."""
    linear = {"parties": 8, "alpha": 1e-4, "epoch_steps": options.steps, "random_state": seed}
    makers = {
        "VAFL": lambda size: VAFLClassifier(
            8, n_steps=10 * options.steps, step_size=size, random_state=seed
        ),
        "AFSGD-VP": lambda size: AFSGDVPClassifier(**linear, step_size=size),
        "AsySQN": lambda size: AsySQNClassifier(**linear, step_size=size),
        "FDML": lambda size: FDMLClassifier(**linear, step_size=size),
    }
    return {method: make(chosen[method]) for method, make in makers.items() if method in chosen}


def chart(data: str, scores: dict[str, list[float]]) -> str:
    return bar_chart(
        {method: {"test AUC": float(np.mean(found))} for method, found in scores.items()},
        title=f"{data}: test AUC",
        value_text=lambda value: f"{value:.4f}",
        width=720,
    )


if __name__ == "__main__":
    main()
