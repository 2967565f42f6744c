"""Rows over workers of Ray, against threads of one process, on one machine.

    python -m benchmarks.scale.workers [--part passes,fit,memory,nodes]

Passes of a solver over 10^6 rows × 512 directions, and what Ray adds to one; a whole fit; a fit of
10^7 rows × 256 and × 512 where no process may have the memory that the phases need; a fit on four
nodes that Ray simulates. Needs Ray (extra ``ray``), 16 GB of memory and 6 GB of disk.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, Benchmark, alternating, arguments, median, seconds
from vertikal import FDSKLClassifier, Workers
from vertikal.compute.open_operator import OpenOperator
from vertikal.compute.threads import one_blas_thread
from vertikal.compute.workers.spread_operator import SpreadOperator, SpreadStore
from vertikal.compute.workers.worker_group import WorkerGroup
from vertikal.kernels.random_features import FourierMap
from vertikal.losses.pointwise import LOSSES
from vertikal.ring.integers import Ring
from vertikal.solvers.lbfgs import sample_rows, solve
from vertikal.solvers.objective import RowObjective

LIMIT = 2_000_000_000
"""Bytes that each process may allocate where memory is short."""

STORE = 1_000_000_000
"""Bytes of Ray's object store there."""

SOLVER = "throughput of the solver, workers / threads"
WHOLE_FIT = "throughput of the whole fit, workers / threads"


def problem(rows: int, columns: int = 8) -> tuple[Any, Any]:
    """Columns in single precision, and labels that depend on columns of both parties."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, columns)).astype(np.float32)
    y = X[:, 0] * X[:, -1] + 0.5 * generator.normal(size=rows) > 0
    return X, y


def passes(run: Benchmark, rows: int, width: int, repeats: int) -> None:
    """Measure iterations of the exact solver in two threads and at two workers."""
    generator = np.random.default_rng(0)
    feature_map = FourierMap(Ring(8), np.zeros((1, width)), np.zeros(width), width)
    phases = generator.integers(0, 256, (rows, width), np.uint8)
    objective = RowObjective(
        np.where(generator.random((rows, 1)) > 0.5, 1.0, -1.0),
        np.ones(rows),
        LOSSES["logistic"],
        0.1 / rows,
        np.zeros(1),
    )
    sample = sample_rows(rows, width, 0)
    group = WorkerGroup(Workers(count=2), "a")
    store = SpreadStore(group, feature_map, rows)
    began = time.perf_counter()
    for start in range(0, rows, 8192):
        part = slice(start, min(start + 8192, rows))
        store.add(part, phases[part])
    group.ask_all("sizes")
    run.figure("seconds to give phases to the workers", round(time.perf_counter() - began, 2))
    here = OpenOperator(feature_map, rows, phases, threads=2)
    there = SpreadOperator(feature_map, store)
    iterations = {}

    def fit(operator: Any, name: str) -> None:
        solution = solve(operator, objective, tolerance=1e-9, max_iterations=8, sample=sample)
        iterations[name] = solution.iterations, solution.coefficients

    with one_blas_thread():
        for operator in (here, there):
            operator.forward(np.ones((width, 1)))
        took = alternating(
            {
                "threads": lambda: fit(here, "threads"),
                "workers": lambda: fit(there, "workers"),
            },
            repeats,
        )
        single = {}
        for name, one in (("threads", here), ("workers", there)):
            kinds = {
                "forward": partial(one.forward, np.ones((width, 1))),
                "adjoint": partial(one.adjoint, np.ones((rows, 1))),
            }
            single[name] = {
                kind: round(median([seconds(product) for _ in range(5)]), 4)
                for kind, product in kinds.items()
            }
    run.figure(
        "solver: seconds, all repeats", {k: [round(t, 3) for t in v] for k, v in took.items()}
    )
    run.figure("solver: iterations", {name: one[0] for name, one in iterations.items()})
    run.figure(
        "solver: largest difference of coefficients, of the largest coefficient",
        float(
            np.abs(iterations["threads"][1] - iterations["workers"][1]).max()
            / np.abs(iterations["threads"][1]).max()
        ),
    )
    run.figure(
        "one product with all vectors at the party's own process: seconds",
        single,
    )
    run.target(
        SOLVER,
        median(took["threads"]) / median(took["workers"]),
        0.85,
        at_most=False,
    )
    asked = [seconds(lambda: group.ask_all("sizes")) for _ in range(300)]
    run.figure(
        "an empty request to both workers: ms, median and 95 %",
        [round(1e3 * median(asked), 3), round(1e3 * float(np.quantile(asked, 0.95)), 3)],
    )
    group.close()


def report_of(model: Any) -> dict[str, float]:
    """Return the seconds of the slowest party in each stage."""
    return {
        stage: round(max(one.seconds for one in parties.values()), 2)
        for stage, parties in model.report_.stages.items()
    }


def fits(run: Benchmark, rows: int, width: int, repeats: int) -> None:
    """Measure whole fits of two parties, each with two workers, against threads.

    A small fit comes first: the workers that it starts are there for the next ones.
    """
    X, y = problem(rows)
    shared = {"n_components": width, "random_state": 0, "max_iter": 30}
    places = {"threads": None, "workers": 2, "workers with links": Workers(count=2, direct=True)}
    models = {name: FDSKLClassifier(workers=one, **shared) for name, one in places.items()}
    for name, model in models.items():
        started = seconds(partial(model.fit, X[:20_000], y[:20_000]))
        run.figure(f"fit by {name}: seconds of a first, small one", round(started, 2))
    fitting = {name: partial(model.fit, X, y) for name, model in models.items()}
    took = alternating(fitting, repeats)
    for name, model in models.items():
        run.figure(f"fit by {name}: seconds, all repeats", [round(one, 2) for one in took[name]])
        run.figure(f"fit by {name}: seconds by stage of the last", report_of(model))
    values = [one.decision_function(X[:5000]) for one in models.values()]
    run.figure("fit: largest difference of f", float(np.abs(values[0] - values[1]).max()))
    run.figure("fit: largest difference by links", float(np.abs(values[1] - values[2]).max()))
    run.target(WHOLE_FIT, median(took["threads"]) / median(took["workers"]), 0.85, at_most=False)


def short_of_memory(rows: int, width: int, workers: int | None) -> dict[str, Any]:
    """Fit where no process may allocate more than `LIMIT`; runs in a process of its own."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    warnings.simplefilter("ignore")
    chosen = None
    if workers:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        import ray

        ray.init("local", object_store_memory=STORE, include_dashboard=False)
        chosen = Workers(count=workers)
    X, y = problem(rows, 4)
    model = FDSKLClassifier(n_components=width, random_state=0, max_iter=10, workers=chosen)
    began = time.perf_counter()
    try:
        model.fit(X, y)
    except MemoryError as error:
        return {"refused": str(error)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "stages": report_of(model),
        "iterations": model.n_iter_,
        "most bytes of the party's own process": peak,
        "accuracy on 10,000 training rows": float(model.score(X[:10_000], y[:10_000])),
    }


def four_nodes(rows: int, width: int) -> dict[str, Any]:
    """Fit on four nodes that Ray simulates, then in threads; runs in a process of its own."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    warnings.simplefilter("ignore")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(4):
        cluster.add_node(num_cpus=2, object_store_memory=STORE)
    ray.init(address=cluster.address, log_to_driver=False)
    X, y = problem(rows)
    shared = {"n_components": width, "random_state": 0, "max_iter": 20}
    here = FDSKLClassifier(**shared)
    found: dict[str, Any] = {"seconds in threads": round(seconds(lambda: here.fit(X, y)), 1)}
    expected = here.decision_function(X[:5000])
    kinds: dict[str, dict[str, Any]] = {
        "through the port": {},
        "with links": {"direct": True},
        "with links and no copies": {"direct": True, "retries": 0},
    }
    for name, options in kinds.items():
        workers = Workers(count=4, address=cluster.address, cpus=1, **options)
        there = FDSKLClassifier(workers=workers, **shared)
        took = seconds(partial(there.fit, X, y))
        found[f"{name}: seconds with the start of workers"] = round(took, 1)
        found[f"{name}: seconds by stage"] = report_of(there)
        far = np.abs(there.decision_function(X[:5000]) - expected).max()
        found[f"{name}: largest difference of f"] = float(far)
    ray.shutdown()
    cluster.shutdown()
    return found


def apart(call: str) -> Any:
    """Return what a function of this module returns in a process of its own."""
    code = f"import json; from benchmarks.scale import workers as w; print(json.dumps(w.{call}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=3000
    )
    if done.returncode:
        return {"failed": done.stderr[-800:]}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    options = arguments(
        __doc__ or "",
        part="passes,fit,memory,nodes",
        rows=1_000_000,
        directions=512,
        many=10_000_000,
        repeats=3,
    )
    kept = Path(RESULTS / "scale-workers.json")
    run = Benchmark(
        "scale-workers",
        {"rows": options.rows, "directions": options.directions, "many rows": options.many},
    )
    again = {part: part in options.part for part in ("passes", "fit")}
    if kept.exists():
        # Parts are measured one at a time.
        before = json.loads(kept.read_text())
        run.figures.update(
            {k: v for k, v in before["figures"].items() if not (k[:3] == "fit" and again["fit"])}
        )
        run.targets.extend(
            one
            for one in before["targets"]
            if not again["passes" if one["name"] == SOLVER else "fit"]
        )
    if "passes" in options.part:
        passes(run, options.rows, options.directions, options.repeats)
    if "fit" in options.part:
        fits(run, options.rows, options.directions, options.repeats)
    if "memory" in options.part:
        for width, workers in ((256, None), (256, 4), (512, 4)):
            found = apart(f"short_of_memory({options.many}, {width}, {workers})")
            words = f"{LIMIT / 1e9:g} GB a process, {width} directions, workers: {workers}"
            run.figure(words, found)
    if "nodes" in options.part:
        run.figure("four nodes", apart(f"four_nodes({options.rows}, 256)"))
    run.write(options.out)


if __name__ == "__main__":
    main()
