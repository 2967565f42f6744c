"""FDSKL Figures 3 and 6: test error over time, and test errors over random splits, by method.

    python -m benchmarks.papers.fdskl.errors
    python -m benchmarks.papers.fdskl.errors --data phishing,a9a --splits 3 --rows 2000

4 parties. "FDSKL, published rule" takes one row and one direction a step; the blocks of DSG's code
are 64 and 64. PP-SVMV and LIBSVM stop beyond ``limit`` training rows, as the paper's ran out of
memory. One file per data set; what is not in the data folder is listed and left out.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.datasets import Split
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.fdskl.data import SETS, missing, split_of
from vertikal import FDSKLClassifier, SecureKernelSVC, Stochastic
from vertikal.baselines.doubly_stochastic import DSGClassifier
from vertikal.estimators.baselines import FDSVRGClassifier
from vertikal.reporting.bar_chart import bar_chart
from vertikal.reporting.line_chart import Series, line_chart

PARTIES = 4


def main() -> None:
    options = arguments(
        __doc__ or "", data="", splits=10, rows=0, steps=4000, directions=2048, limit=10_000
    )
    absent = missing()
    for name in options.data.split(",") if options.data else SETS:
        if name in absent:
            print(f"left out: {name} ({absent[name]} is not in the data folder)", flush=True)
            continue
        study(name, options)


def study(name: str, options: Any) -> None:
    """All methods on one data set."""
    run = Benchmark(
        f"papers-fdskl-errors-{name}", vars(options) | {"out": "", "data": name, "parties": PARTIES}
    )
    errors: dict[str, list[float]] = {}
    curves: dict[str, list[tuple[float, float]]] = {}
    for seed in range(options.splits):
        split = split_of(name, seed, options.rows)
        for method, model in models(split, seed, options).items():
            seconds, error = fitted(model, split)
            errors.setdefault(method, []).append(error)
            curves.setdefault(method, []).append((seconds, error))
        if seed == 0:
            for method, points in ladders(split, options).items():
                curves[method] = points
    for method, found in errors.items():
        run.figure(f"{name}: {method}: test error, mean", float(np.mean(found)))
        run.figure(f"{name}: {method}: standard deviation", float(np.std(found)))
        run.figures[f"{method}: test errors by split"] = found
        run.figures[f"{method}: seconds and error"] = curves[method][:10]
    best = min(errors, key=lambda method: float(np.mean(errors[method])))
    run.figure(f"{name}: lowest error", best)
    run.write(options.out)
    run.draw(options.out, over_time(name, curves), "time")
    run.draw(options.out, by_method(name, errors), "methods")


def models(split: Split, seed: int, options: Any) -> dict[str, Any]:
    """All methods at their full number of steps."""
    given = {"parties": PARTIES, "n_components": options.directions, "random_state": seed}
    alpha = 0.1 / len(split.y)
    found: dict[str, Any] = {
        "FDSKL, published rule": FDSKLClassifier(**given, solver=published(options.steps)),
        "FDSKL, blocks": FDSKLClassifier(**given, solver=blocks(options.steps // 10)),
        "FDSKL, exact": FDSKLClassifier(**given),
        "DSG": DSGClassifier(
            n_components=options.directions,
            alpha=alpha,
            step_size=2.0,
            n_steps=options.steps // 10,
            random_state=seed,
        ),
        "FD-SVRG": FDSVRGClassifier(
            PARTIES, alpha=alpha, epochs=5, epoch_steps=400, random_state=seed
        ),
    }
    if len(split.y) <= options.limit:
        found["PP-SVMV"] = SecureKernelSVC(PARTIES, random_state=seed)
        found["LIBSVM"] = SVC(C=10.0)
    return found


def ladders(split: Split, options: Any) -> dict[str, list[tuple[float, float]]]:
    """(seconds, test error) of stochastic methods at a tenth, a third and all of their steps."""
    given = {"parties": PARTIES, "n_components": options.directions, "random_state": 0}
    found: dict[str, list[tuple[float, float]]] = {}
    for part in (10, 3, 1):
        steps = options.steps // part
        for method, solver in (
            ("FDSKL, published rule", published(steps)),
            ("FDSKL, blocks", blocks(max(1, steps // 10))),
        ):
            found.setdefault(method, []).append(
                fitted(FDSKLClassifier(**given, solver=solver), split)
            )
    return found


def published(steps: int) -> Stochastic:
    """One row and one direction a step."""
    return Stochastic(batch_size=1, block_size=1, n_steps=steps)


def blocks(steps: int) -> Stochastic:
    return Stochastic(n_steps=steps)


def fitted(model: Any, split: Split) -> tuple[float, float]:
    """Seconds to fit, and the test error."""
    began = time.perf_counter()
    model.fit(split.X, split.y)
    seconds = time.perf_counter() - began
    return seconds, float(np.mean(model.predict(split.X_test) != split.y_test))


def over_time(name: str, curves: dict[str, list[tuple[float, float]]]) -> str:
    series = []
    for method, points in curves.items():
        seconds, found = zip(*sorted(points), strict=True)
        series.append(Series(method, seconds, found))
    return line_chart(
        series,
        title=f"{name}: test error over training time",
        x_label="seconds",
        y_label="test error",
        log_x=True,
    )


def by_method(name: str, errors: dict[str, list[float]]) -> str:
    return bar_chart(
        {method: {"test error": float(np.mean(found))} for method, found in errors.items()},
        title=f"{name}: test error, mean over splits",
        value_text=lambda value: f"{value:.4f}",
        width=720,
    )


if __name__ == "__main__":
    main()
