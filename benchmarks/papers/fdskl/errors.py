"""FDSKL Figures 3 and 6: test error over time, and test errors over random splits, by method.

    python -m benchmarks.papers.fdskl.errors
    python -m benchmarks.papers.fdskl.errors --data phishing,a9a --splits 3 --rows 2000

4 parties. "FDSKL, published rule" takes one row and one direction a step; the blocks of DSG's code
are 64 and 64. The steps of all stochastic methods are chosen for each data set by the error on a
quarter of the training rows of the first split, at most ``tuning`` rows in all. PP-SVMV and LIBSVM
stop beyond ``limit`` training rows, as the paper's ran out of memory. One file per data set; what
is not in the data folder is listed and left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from benchmarks.datasets import Split
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.fdskl.data import PARTS, SETS, missing, split_of
from benchmarks.papers.sets import at_hand
from benchmarks.papers.step_sizes import chosen_step
from vertikal import FDSKLClassifier, SecureKernelSVC, Stochastic
from vertikal.baselines.doubly_stochastic import DSGClassifier
from vertikal.estimators.baselines import FDSVRGClassifier
from vertikal.reporting.bar_chart import bar_chart
from vertikal.reporting.line_chart import Series, line_chart

PARTIES = 4
STEP_SIZES = {
    "FDSKL, published rule": (0.003, 0.01, 0.03, 0.1, 0.3),
    "FDSKL, blocks": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0),
    "DSG": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0),
    "FD-SVRG": (0.03, 0.1, 0.3, 1.0, 3.0),
}
"""Constant steps that are tried, by method."""


def main() -> None:
    options = arguments(
        __doc__ or "",
        data="",
        splits=10,
        rows=0,
        steps=4000,
        directions=2048,
        limit=10_000,
        tuning=8000,
    )
    for name in at_hand(options.data, SETS, missing()):
        study(name, options)


def study(name: str, options: Any) -> None:
    """All methods on one data set."""
    run = Benchmark(
        f"papers-fdskl-errors-{name}",
        vars(options)
        | {"out": "", "data": name, "part": PARTS.get(name, "all"), "parties": PARTIES},
    )
    errors: dict[str, list[float]] = {}
    curves: dict[str, list[tuple[float, float]]] = {}
    chosen: dict[str, float] = {}
    for seed in range(options.splits):
        split = split_of(name, seed, options.rows)
        if seed == 0:
            chosen = chosen_steps(run, split, options)
        for method, model in models(split, seed, options, chosen).items():
            seconds, error = fitted(model, split)
            errors.setdefault(method, []).append(error)
            curves.setdefault(method, []).append((seconds, error))
        if seed == 0:
            for method, points in ladders(split, options, chosen).items():
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


def chosen_steps(run: Benchmark, split: Split, options: Any) -> dict[str, float]:
    """Find the step of each stochastic method with the lowest error on held-back training rows."""
    X, X_held, y, y_held = train_test_split(
        split.X, split.y, test_size=0.25, random_state=0, stratify=split.y
    )
    if options.tuning and options.tuning < len(y):
        X, _, y, _ = train_test_split(X, y, train_size=options.tuning, random_state=0, stratify=y)
    held_back = Split(split.name, X, y, X_held, y_held)
    return {
        method: chosen_step(
            run,
            method,
            sizes,
            lambda size, method=method: stochastic(held_back, 0, options, {method: size})[method],
            lambda model: 1 - fitted(model, held_back)[1],
        )
        for method, sizes in STEP_SIZES.items()
    }


def models(split: Split, seed: int, options: Any, chosen: Mapping[str, float]) -> dict[str, Any]:
    """All methods at their full number of steps."""
    found = stochastic(split, seed, options, chosen)
    found["FDSKL, exact"] = FDSKLClassifier(
        PARTIES, n_components=options.directions, random_state=seed
    )
    if len(split.y) <= options.limit:
        found["PP-SVMV"] = SecureKernelSVC(PARTIES, random_state=seed)
        found["LIBSVM"] = SVC(C=10.0)
    return found


def stochastic(
    split: Split, seed: int, options: Any, chosen: Mapping[str, float], part: int = 1
) -> dict[str, Any]:
    """Return the stochastic methods whose step is chosen, with one in ``part`` of their steps."""
    given = {"n_components": options.directions, "random_state": seed}
    alpha = 0.1 / len(split.y)
    steps = max(1, options.steps // part)
    makers = {
        # One row and one direction a step.
        "FDSKL, published rule": lambda size: FDSKLClassifier(
            PARTIES,
            **given,
            solver=Stochastic(batch_size=1, block_size=1, n_steps=steps, step_size=size),
        ),
        "FDSKL, blocks": lambda size: FDSKLClassifier(
            PARTIES, **given, solver=Stochastic(n_steps=max(1, steps // 10), step_size=size)
        ),
        "DSG": lambda size: DSGClassifier(
            **given, alpha=alpha, step_size=size, n_steps=max(1, steps // 10)
        ),
        "FD-SVRG": lambda size: FDSVRGClassifier(
            PARTIES, alpha=alpha, step_size=size, epochs=5, epoch_steps=400, random_state=seed
        ),
    }
    return {method: make(chosen[method]) for method, make in makers.items() if method in chosen}


def ladders(
    split: Split, options: Any, chosen: Mapping[str, float]
) -> dict[str, list[tuple[float, float]]]:
    """(seconds, test error) of FDSKL's rules at a tenth, a third and all of their steps."""
    found: dict[str, list[tuple[float, float]]] = {}
    ours = {method: size for method, size in chosen.items() if method.startswith("FDSKL")}
    for part in (10, 3, 1):
        for method, model in stochastic(split, 0, options, ours, part).items():
            found.setdefault(method, []).append(fitted(model, split))
    return found


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
