"""AVFKAM Figures 5 and 6: AUC over updates for several bandwidths, and for several penalties.

    python -m benchmarks.papers.avfkam.figures5_6

The asynchronous solver, 8 parties, 4 of them label parties, in one process, on all sets of the
paper that are in the data folder; the others are listed. The curves are those of the rows held out
of the training.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.avfkam.data import FILES, PARTS, missing, rows_of
from benchmarks.papers.avfkam.settings import DSG
from vertikal import AVFKAMClassifier
from vertikal.reporting.line_chart import Series, line_chart

BANDWIDTHS = (0.25, 1.0, 4.0)
"""Multiples of the bandwidth that the other benchmarks use."""

PENALTIES = (1e-6, 1e-4, 1e-2, 1e-1)
HELD_OUT = 0.2
"""Share of the rows that the curves are of: sector has 1 % of positive rows."""


def main() -> None:
    options = arguments(__doc__ or "", data="", rows=20_000, seed=0)
    run = Benchmark(
        "papers-avfkam-figures5-6",
        vars(options) | {"out": "", "dsg": DSG, "held out": HELD_OUT, "parts": PARTS},
    )
    charts: dict[str, str] = {}
    absent = missing()
    for data in options.data.split(",") if options.data else FILES:
        if data in absent:
            run.figure(f"{data}: left out, not in the data folder", absent[data])
            continue
        rows = rows_of(data, options.seed, options.rows)
        usual = DSG[data] | {"validation": HELD_OUT}
        for words, name, values in (
            ("bandwidth", "bandwidth", [usual["bandwidth"] * m for m in BANDWIDTHS]),
            ("penalty", "alpha", list(PENALTIES)),
        ):
            series = []
            for value in values:
                model = AVFKAMClassifier(
                    parties=8,
                    label_parties=4,
                    random_state=options.seed,
                    **(usual | {name: value}),
                ).fit(rows.X, rows.y)
                curve = [(point.total, point.auc) for point in model.curve_]
                run.figures[f"{data}: {words} {value:g}: AUC by updates"] = curve
                run.figure(f"{data}: {words} {value:g}: AUC at the end", curve[-1][1])
                series.append(Series(f"{words} {value:g}", *zip(*curve, strict=True)))
            charts[f"{data}-{words}"] = line_chart(
                series,
                title=f"{data}: AUC by updates, several values of the {words}",
                x_label="updates of all label parties",
                y_label="AUC on held-out rows",
                width=560,
            )
    run.write(options.out)
    for part, chart in charts.items():
        run.draw(options.out, chart, part)


if __name__ == "__main__":
    main()
