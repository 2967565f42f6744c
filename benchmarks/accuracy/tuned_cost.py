"""The price of tuning: a9a with three parties, against one plain fit of as many directions.

    python -m benchmarks.accuracy.tuned_cost [--components 2048] [--hidden 1024]

Bytes are those of any one sender over n·D; a plain fit in the open sends one byte for each row and
direction. Times are medians of runs that take turns, so that a busy machine slows both alike.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from sklearn.metrics import roc_auc_score

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from vertikal import FDSKLClassifier, KernelClassifier

PARTIES = 3
REPEATS = {"open": 3, "values": 1}
MOST_TIMES = {"open": 6.0, "values": 4.0}
MOST_BYTES = 2.5


def main() -> None:
    options = arguments(__doc__ or "", components=2048, hidden=1024)
    split = datasets.a9a()
    rows = len(split.y)
    run = Benchmark(
        "accuracy-tuned-cost",
        {"parties": PARTIES, "rows": rows, "D": options.components, "D hidden": options.hidden},
    )
    # Compiled loops and libraries are loaded before anything is timed.
    KernelClassifier(PARTIES, n_components=16).fit(split.X[:500], split.y[:500])
    for level, width in (("open", options.components), ("values", options.hidden)):
        given: dict[str, Any] = {"n_components": width, "disclosure": level, "random_state": 0}
        kinds = {
            "plain": FDSKLClassifier(PARTIES, **given),
            "tuned": KernelClassifier(PARTIES, **given),
        }
        seconds: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(REPEATS[level]):
            for name, model in kinds.items():
                began = time.perf_counter()
                model.fit(split.X, split.y)
                seconds[name].append(time.perf_counter() - began)
        for name, model in kinds.items():
            run.figure(f"{level}, {name}: seconds", statistics.median(seconds[name]))
            sent = model.report_.bytes_sent
            run.figure(
                f"{level}, {name}: bytes of any sender / nD", max(sent.values()) / rows / width
            )
            run.figure(f"{level}, {name}: bytes of all / nD", sum(sent.values()) / rows / width)
            scores = model.decision_function(split.X_test)
            run.figure(f"{level}, {name}: AUC", float(roc_auc_score(split.y_test, scores)))
        figures = run.figures
        ratio = figures[f"{level}, tuned: seconds"] / figures[f"{level}, plain: seconds"]
        run.target(f"{level}: times a plain fit", ratio, MOST_TIMES[level], at_most=True)
    sent = run.figures["open, tuned: bytes of any sender / nD"]
    run.target("open: bytes over n·D", sent, MOST_BYTES, at_most=True)
    run.write(options.out)


if __name__ == "__main__":
    main()
