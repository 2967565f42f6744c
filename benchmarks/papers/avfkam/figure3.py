"""AVFKAM Figure 3: AUC over time with a straggler, with a barrier, in turns and asynchronous.

    python -m benchmarks.papers.avfkam.figure3
    python -m benchmarks.papers.avfkam.figure3 --data news20 --factors 0,4 --repeats 1

One file per data set; what is not in the data folder is listed and left out. 8 processes
over mutual TLS on loopback, 4 of them label parties. The last label party sleeps 1, 2 or 4 times
(``factors``; 0: no straggler) its own compute time after each of its updates. AUC is that of the
rows held out of the training, as the first label party measures it during the run; seconds are
those of the solver, from its start. With a barrier, and in turns, every label party makes the same
number of updates; asynchronously each makes as many as it can, half as many again in all, so that
the AUC at which the others end is surely passed. The step is small and the batches are large: the
AUC rises to the end, and computing outweighs talking. All of it is repeated ``repeats`` times in
turn; times and ratios are medians, with the least and the most beside them.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from benchmarks.harness import Benchmark, arguments, median
from benchmarks.papers.avfkam.data import FILES, PARTS, missing, rows_of
from benchmarks.papers.avfkam.processes import Pace, Processes, Result
from benchmarks.papers.avfkam.settings import bandwidth_of
from benchmarks.papers.sets import at_hand
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings, Stochastic
from vertikal.reporting.line_chart import Series, line_chart

NAMES = tuple(f"party{i}" for i in range(1, 9))
LABEL_PARTIES = NAMES[:4]
STRAGGLER = LABEL_PARTIES[-1]
Schedule = Literal["barrier", "turns", "async"]
SCHEDULES: tuple[Schedule, ...] = ("barrier", "turns", "async")
MORE = {"barrier": 1.0, "turns": 1.0, "async": 1.5}
HELD_OUT = {"sector": 0.2}
"""Share of the rows that the curves are of, where a tenth has too few of one class."""
WORDS = {"barrier": "VFKAM", "turns": "in turns", "async": "AVFKAM"}


def main() -> None:
    options = arguments(
        __doc__ or "",
        data="",
        factors="0,1,2,4",
        steps=300,
        directions=4096,
        batch=4096,
        block=1024,
        repeats=3,
        rows=20_000,
    )
    for data in at_hand(options.data, FILES, missing()):
        study(data, options)


def study(data: str, options: Any) -> None:
    """All schedules and stragglers on one data set."""
    rows = rows_of(data, 0, options.rows)
    run = Benchmark(
        f"papers-avfkam-figure3-{data}",
        vars(options) | {"out": "", "data": data, "part": PARTS.get(data, "all")},
    )
    factors = [int(factor) for factor in options.factors.split(",")]
    processes = Processes(NAMES, rows.X, rows.y)
    curves: dict[tuple[str, int], list[dict[str, Result]]] = {}
    try:
        # Warm up: compiled loops, caches.
        processes.run(settings_of(data, "async", options, steps=8))
        for _ in range(options.repeats):
            for factor in factors:
                for schedule in SCHEDULES:
                    found = processes.run(
                        settings_of(data, schedule, options), {STRAGGLER: Pace(multiple=factor)}
                    )
                    curves.setdefault((schedule, factor), []).append(found)
    finally:
        processes.close()
    times = report(run, curves)
    for factor in factors:
        for other in ("barrier", "turns"):
            who = f"straggler {factor}x" if factor else "no straggler"
            figure_with_spread(
                run,
                f"{data}: AVFKAM / {WORDS[other]}, {who}: time to that AUC",
                ratios(times["async", factor], times[other, factor]),
            )
    if data == "a9a" and {0, 4} <= set(factors):
        run.target(
            "straggler 4x: async time to that AUC / the barrier's",
            median(ratios(times["async", 4], times["barrier", 4])),
            0.5,
            at_most=True,
        )
        run.target(
            "async to that AUC, straggler 4x / no straggler",
            median(ratios(times["async", 4], times["async", 0])),
            1.3,
            at_most=True,
        )
    run.write(options.out)
    run.draw(options.out, chart(data, curves))


def settings_of(
    data: str, schedule: Schedule, options: Any, steps: int | None = None
) -> AvfkamSettings:
    return AvfkamSettings(
        parties=NAMES,
        label_parties=LABEL_PARTIES,
        solver=Stochastic(
            schedule=schedule,
            batch_size=options.batch,
            block_size=options.block,
            n_steps=steps or round(options.steps * MORE[schedule]),
            step_size=0.2,
        ),
        n_components=options.directions,
        alpha=1e-5,
        bandwidth=bandwidth_of(data),
        validation=HELD_OUT.get(data, 0.1),
        seed=1,
    )


def report(
    run: Benchmark, curves: dict[tuple[str, int], list[dict[str, Result]]]
) -> dict[tuple[str, int], list[float]]:
    """Keep figures of every run; return the seconds to an AUC that all schedules reach, by repeat.

    It is the lower of those that the barrier and the turns end with, where nobody is slow.
    """
    ends = {
        schedule: median([points(found)[-1][1] for found in curves[schedule, 0]])
        for schedule in ("barrier", "turns")
    }
    goal = run.figure("AUC that barrier and turns end with, the lower", min(ends.values()))
    times = {}
    for (schedule, factor), repeats in curves.items():
        name = f"{WORDS[schedule]} ({factor}x)"
        times[schedule, factor] = [seconds_to(points(found), goal) for found in repeats]
        figure_with_spread(run, f"{name}: seconds to that AUC", times[schedule, factor])
        run.figure(f"{name}: AUC at the end", [points(found)[-1][1] for found in repeats])
        run.figure(f"{name}: seconds in all", [found[NAMES[0]].solve_seconds for found in repeats])
        last = repeats[-1]
        updates = {p: sum(last[p].training.staleness.values()) for p in LABEL_PARTIES}
        run.figure(f"{name}: updates by label party", updates)
        run.figure(f"{name}: staleness, mean and most", staleness(last))
        run.figures[f"{name}: curve"] = points(last)
    return times


def points(found: dict[str, Result]) -> list[tuple[float, float]]:
    """(seconds, AUC) as the first label party saw them."""
    moments = found[NAMES[0]].training.moments
    return [(moment.seconds, moment.auc) for moment in moments if moment.auc is not None]


def seconds_to(curve: list[tuple[float, float]], goal: float) -> float:
    """Return when the goal is reached for the first time."""
    reached = [seconds for seconds, score in curve if score >= goal]
    return reached[0] if reached else float("inf")


def ratios(times: list[float], others: list[float]) -> list[float]:
    """Divide times by others of the same repeat; infinite where one did not reach the goal."""
    both = zip(times, others, strict=True)
    return [mine / other if math.isfinite(mine + other) else math.inf for mine, other in both]


def figure_with_spread(run: Benchmark, name: str, values: list[float]) -> None:
    """Keep the median of some repeats, and the least and the most of them."""
    run.figure(name, told(median(values)))
    if len(values) > 1:
        run.figure(f"{name}, least and most", [told(min(values)), told(max(values))])


def told(value: float) -> float | str:
    """Write a time, or a ratio of two, as a figure; a run may not reach the goal."""
    return value if math.isfinite(value) else "not reached"


def staleness(found: dict[str, Result]) -> tuple[float, int]:
    ages = {}
    for party in LABEL_PARTIES:
        for age, count in found[party].training.staleness.items():
            ages[age] = ages.get(age, 0) + count
    return sum(age * count for age, count in ages.items()) / sum(ages.values()), max(ages)


def chart(data: str, curves: dict[tuple[str, int], list[dict[str, Result]]]) -> str:
    series = []
    for (schedule, factor), repeats in sorted(curves.items(), key=lambda item: item[0][::-1]):
        if factor:
            x, y = zip(*points(repeats[-1]), strict=True)
            name = f"{WORDS[schedule]} ({factor}x)"
            series.append(Series(name, x, y, dashed=schedule != "async"))
    return line_chart(
        series,
        title=f"{data}: AUC on held-out rows over time, one straggler",
        x_label="seconds",
        y_label="AUC",
        width=720,
        height=460,
    )


if __name__ == "__main__":
    main()
