"""AVFKAM Figure 4 on a9a: speed-up over 1 to 8 label parties, real processes over TLS.

    python -m benchmarks.papers.avfkam.figure4

Two cores cannot show eight parties that compute. So every update of a label party is followed by a
sleep of fixed length, as if it computed on a machine of its own: what is shared is waiting, not the
core. The plain figure, without any sleep, is measured as well. Speed-up is the time of one label
party (TSAM) over that of m, for the same number of updates.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark, arguments, median
from benchmarks.papers.avfkam.data import rows_of
from benchmarks.papers.avfkam.processes import Pace, Processes
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings, Schedule, Stochastic
from vertikal.reporting.line_chart import Series, line_chart

NAMES = tuple(f"party{i}" for i in range(1, 9))
COUNTS: dict[Schedule, tuple[int, ...]] = {
    "async": (1, 2, 4, 6, 8),
    "barrier": (2, 4, 8),
    "turns": (8,),
}
"""One label party alone takes the same steps by any schedule, so that it is measured once."""
WORDS = {"async": "AVFKAM", "barrier": "VFKAM", "turns": "in turns"}


def main() -> None:
    options = arguments(__doc__ or "", delay=0.5, steps=96, repeats=1, rows=8000)
    rows = rows_of("a9a", 0, options.rows)
    run = Benchmark("papers-avfkam-figure4", vars(options) | {"out": "", "data": "a9a"})
    processes = Processes(NAMES, rows.X, rows.y)
    seconds: dict[str, dict[int, float]] = {}
    try:
        processes.run(delayed("async", 2, 8))
        for kind, pace, make in (
            ("sleeping", Pace(seconds=options.delay), delayed),
            ("plain", Pace(), computing),
        ):
            for schedule, counts in COUNTS.items():
                name = f"{kind}, {schedule}"
                for count in counts:
                    found = [
                        time_of(processes, make(schedule, count, options.steps), pace)
                        for _ in range(options.repeats)
                    ]
                    seconds.setdefault(name, {})[count] = median(found)
                run.figure(f"{name}: seconds by label parties", seconds[name])
    finally:
        processes.close()
    alone = {kind: seconds[f"{kind}, async"][1] for kind in ("sleeping", "plain")}
    speedups = {
        name: {m: alone[name.split(",")[0]] / spent for m, spent in times.items()}
        for name, times in seconds.items()
    }
    for name, values in speedups.items():
        run.figure(f"{name}: speed-up by label parties", values)
    run.target(
        f"async speed-up at 8 label parties, each sleeping {options.delay:g} s an update",
        speedups["sleeping, async"][8],
        6.0,
        at_most=False,
    )
    run.write(options.out)
    run.draw(options.out, chart(speedups, options.delay))


def time_of(processes: Processes, settings: AvfkamSettings, pace: Pace) -> float:
    found = processes.run(settings, dict.fromkeys(settings.label_parties, pace))
    return max(result.solve_seconds for result in found.values())


def delayed(schedule: Schedule, count: int, steps: int) -> AvfkamSettings:
    """Small steps: all that takes time is the sleep."""
    return settings_of(schedule, count, steps, n_components=512, batch=32, block=32)


def computing(schedule: Schedule, count: int, steps: int) -> AvfkamSettings:
    """Large steps, so that there is something to share."""
    return settings_of(schedule, count, steps, n_components=4096, batch=2048, block=512)


def settings_of(
    schedule: Schedule, count: int, steps: int, *, n_components: int, batch: int, block: int
) -> AvfkamSettings:
    return AvfkamSettings(
        parties=NAMES,
        label_parties=NAMES[:count],
        n_components=n_components,
        solver=Stochastic(
            schedule=schedule,
            n_steps=steps,
            step_size=0.2,
            batch_size=batch,
            block_size=block,
        ),
        alpha=1e-5,
        bandwidth=6.0,
        validation=0.0,
        seed=1,
    )


def chart(speedups: dict[str, dict[int, float]], delay: float) -> str:
    words = {"sleeping": f"sleeping {delay:g} s an update", "plain": "two cores, no sleep"}
    series = [Series("ideal", COUNTS["async"], COUNTS["async"], dashed=True)]
    for name, values in speedups.items():
        kind, schedule = name.split(", ")
        label = f"{WORDS[schedule]}, {words[kind]}"
        series.append(Series(label, list(values), list(values.values())))
    return line_chart(
        series,
        title="a9a: speed-up over label parties",
        x_label="label parties",
        y_label="speed-up over one",
        width=640,
        height=460,
    )


if __name__ == "__main__":
    main()
