"""FDSKL Figure 5 and Table 4: training time over rows against PP-SVMV, and by data set.

    python -m benchmarks.papers.fdskl.times

Table 4 is FDSKL's published minutes (24 cores) beside ours. SecureBoost, its rival there, is timed
on ``boost`` rows with a key of 1024 bits: its time is linear in the rows, and all would take
days. PP-SVMV's time and memory grow with the square of the rows, so that it stops at ``limit``.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark, arguments, seconds
from benchmarks.papers.fdskl.data import PARTS, SETS, missing, split_of
from vertikal import FDSKLClassifier, SecureKernelSVC, Stochastic
from vertikal.estimators.baselines import SecureBoostClassifier
from vertikal.reporting.line_chart import Series, line_chart

PUBLISHED = {
    "gisette": 1,
    "phishing": 1,
    "a9a": 2,
    "ijcnn1": 1,
    "cod-rna": 1,
    "w8a": 1,
    "real-sim": 14,
    "epsilon": 29,
    "defaultcredit": 1,
    "givemecredit": 3,
}
"""Minutes of FDSKL in Table 4."""
PUBLISHED_BOOST = {
    "gisette": 46,
    "phishing": 10,
    "a9a": 15,
    "ijcnn1": 17,
    "cod-rna": 16,
    "w8a": 17,
    "real-sim": 65,
    "epsilon": "more than 900",
    "defaultcredit": 13,
    "givemecredit": 32,
}
"""Minutes of SecureBoost there."""
SIZES = (1000, 2000, 4000, 8000, 16_000)


def main() -> None:
    options = arguments(
        __doc__ or "", data="a9a", rows=0, limit=8000, steps=400, directions=2048, boost=1000
    )
    run = Benchmark("papers-fdskl-times", vars(options) | {"out": "", "parties": 4, "parts": PARTS})
    absent = missing()
    given = {"parties": 4, "n_components": options.directions, "random_state": 0}
    solver = Stochastic(n_steps=options.steps)
    for name in SETS:
        if name in absent:
            run.figure(f"{name}: left out, not in the data folder", absent[name])
            continue
        split = split_of(name, 0, options.rows)
        model = FDSKLClassifier(**given, solver=solver)
        found = seconds(lambda model=model, split=split: model.fit(split.X, split.y)) / 60
        run.figure(f"{name}: training rows", len(split.y))
        run.figure(f"{name}: minutes of FDSKL", found)
        if name in PUBLISHED:
            run.figure(f"{name}: minutes of FDSKL, published", PUBLISHED[name])
            run.figure(f"{name}: minutes of SecureBoost, published", PUBLISHED_BOOST[name])
    times: dict[str, dict[int, float]] = {"FDSKL": {}, "PP-SVMV": {}}
    for size in SIZES:
        if options.data in absent or (options.rows and size > options.rows):
            continue
        split = split_of(options.data, 0, size)
        for method, model in (
            ("FDSKL", FDSKLClassifier(**given, solver=solver)),
            ("PP-SVMV", SecureKernelSVC(4, random_state=0)),
        ):
            if method == "FDSKL" or size <= options.limit:
                times[method][size] = seconds(
                    lambda model=model, split=split: model.fit(split.X, split.y)
                )
    if options.data not in absent and options.boost:
        split = split_of(options.data, 0, options.boost)
        model = SecureBoostClassifier(4, n_trees=1, key_bits=1024, random_state=0)
        found = seconds(lambda: model.fit(split.X, split.y)) / len(split.y)
        run.figure(f"{options.data}: SecureBoost: rows that it was timed on", len(split.y))
        run.figure(f"{options.data}: SecureBoost: seconds a row and tree, 1024 bits", found)
    for method, found_by_size in times.items():
        run.figure(f"{options.data}: {method}: seconds by rows", found_by_size)
    run.write(options.out)
    if times["FDSKL"]:
        series = [Series(name, list(one), list(one.values())) for name, one in times.items()]
        chart = line_chart(
            series,
            title=f"{options.data}: training time over rows",
            x_label="rows",
            y_label="seconds",
            log_x=True,
            log_y=True,
        )
        run.draw(options.out, chart)


if __name__ == "__main__":
    main()
