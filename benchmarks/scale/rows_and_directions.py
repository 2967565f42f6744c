"""Time and memory of a federated fit as rows and directions grow; generated population.

    python -m benchmarks.scale.rows_and_directions

Each size runs in a process of its own, so that its peak memory is its own. The exponents are slopes
of log time over log size, from 10⁴ to 10⁶ rows and from 256 to 4096 directions.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.harness import Benchmark, arguments, median
from vertikal import FDSKLClassifier
from vertikal.demo.credit import credit_population

ROWS = (10_000, 31_623, 100_000, 316_228, 1_000_000)
DIRECTIONS = (256, 512, 1024, 2048, 4096)


def measure(rows: int, directions: int) -> dict[str, float]:
    """In this process: seconds of a fit, peak memory, and memory before it."""
    population = credit_population(rows, seed=0)
    small = slice(0, 2000)
    model = FDSKLClassifier(
        population.numbers(), scale="standard", n_components=directions, random_state=0
    )
    model.fit(population.X[small], population.y[small])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    began = time.process_time()
    model.fit(population.X, population.y)
    busy = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "seconds": model.report_.wall,
        "cpu": busy,
        "iterations": model.n_iter_,
        "peak": peak,
        "before": before,
        "data": population.X.nbytes,
    }


def elsewhere(rows: int, directions: int, repeats: int) -> dict[str, float]:
    """`measure` in processes of their own; the median of its figures."""
    command = [sys.executable, "-m", __spec__.name, "--one", str(rows), str(directions)]
    runs = []
    for _ in range(repeats):
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return {key: median([run[key] for run in runs]) for key in runs[0]}


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def exponents(
    run: Benchmark, of: str, sizes: tuple[int, ...], found: list[dict[str, float]]
) -> None:
    """Of the time on the clock, which is the target, and of the cores' own, which no load moves."""
    slope = exponent(sizes, [figures["seconds"] for figures in found])
    run.target(f"exponent in {of}", slope, 1.1, at_most=True)
    run.figure(f"exponent in {of}, CPU", exponent(sizes, [figures["cpu"] for figures in found]))


def main() -> None:
    options = arguments(__doc__ or "", repeats=3)
    run = Benchmark(
        "scale-rows-and-directions",
        {"parties": 3, "rows": ROWS, "directions": DIRECTIONS, "repeats": options.repeats},
    )
    by_rows = [elsewhere(rows, 256, options.repeats if rows < 10**6 else 1) for rows in ROWS]
    for rows, found in zip(ROWS, by_rows, strict=True):
        run.figure(
            f"{rows} rows, D = 256: seconds, CPU seconds, iterations",
            [found["seconds"], found["cpu"], found["iterations"]],
        )
        phases = rows * 256
        run.figure(
            f"{rows} rows, D = 256: (peak − before) / (rows × D)",
            (found["peak"] - found["before"]) / phases,
        )
    exponents(run, "rows", ROWS, by_rows)
    by_width = [elsewhere(100_000, width, options.repeats) for width in DIRECTIONS]
    for width, found in zip(DIRECTIONS, by_width, strict=True):
        run.figure(
            f"100000 rows, D = {width}: seconds, CPU seconds, iterations",
            [found["seconds"], found["cpu"], found["iterations"]],
        )
    exponents(run, "D", DIRECTIONS, by_width)
    largest = by_rows[-1]
    allowed = 2.5 * ROWS[-1] * 256 + largest["data"]
    used = largest["peak"] - (largest["before"] - largest["data"])
    run.target("peak memory / (2.5 × rows × D bytes + the data)", used / allowed, 1.0, at_most=True)
    run.write(options.out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--one", nargs=2, type=int)
    single, _ = parser.parse_known_args()
    if single.one:
        print(json.dumps(measure(*single.one)))
    else:
        main()
