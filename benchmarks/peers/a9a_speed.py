"""a9a, 4 parties, D = 1024: what the federation costs, and how the fit compares with others.

    python -m benchmarks.peers.a9a_speed

In one run, in turn: the federated fit; the same solver on pooled columns; scikit-learn's RBFSampler
with LogisticRegression on pooled columns; SVC. Times include everything that `fit` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks import datasets
from benchmarks.accuracy.figures import bandwidth, scores
from benchmarks.harness import Benchmark, alternating, arguments, median, seconds
from vertikal import FDSKLClassifier
from vertikal.baselines import PooledKernelClassifier

PARTIES = 4
D = 1024
GAMMA = 0.02
PENALTY = 1e-5


def main() -> None:
    options = arguments(__doc__ or "", repeats=7)
    run = Benchmark(
        "peers-a9a-speed",
        {
            "parties": PARTIES,
            "D": D,
            "gamma": GAMMA,
            "alpha": PENALTY,
            "LogisticRegression": {"C": 10, "max_iter": 1000},
            "SVC": {"C": 1, "gamma": GAMMA},
            "repeats": options.repeats,
        },
    )
    split = datasets.a9a()
    shared: dict[str, Any] = {
        "n_components": D,
        "bandwidth": bandwidth(GAMMA),
        "alpha": PENALTY,
        "random_state": 0,
    }
    models: dict[str, Any] = {
        "federated": FDSKLClassifier(PARTIES, **shared),
        "pooled": PooledKernelClassifier(**shared),
        "RBFSampler": make_pipeline(
            RBFSampler(gamma=GAMMA, n_components=D, random_state=0),
            LogisticRegression(C=10, max_iter=1000),
        ),
    }
    for model in models.values():  # once, to compile and warm up
        model.fit(split.X, split.y)
    times = alternating(
        {
            name: lambda model=model: model.fit(split.X, split.y)  # type: ignore[misc]
            for name, model in models.items()
        },
        options.repeats,
        warm=True,
    )
    took = {name: median(values) for name, values in times.items()}
    for name, values in times.items():
        run.figure(f"{name}: seconds, all repeats", [round(value, 3) for value in sorted(values)])
    for name in ("federated", "pooled"):
        spent = [processor_seconds(partial(models[name].fit, split.X, split.y)) for _ in range(5)]
        run.figure(f"{name}: processor seconds", round(median(spent), 3))
    errors = {name: scores(model, split) for name, model in models.items()}
    for name, (error, auc) in errors.items():
        run.figure(f"{name}: error and AUC", [round(error, 4), round(auc, 4)])

    svc = SVC(gamma=GAMMA)
    svc_seconds = run.figure("SVC: seconds", seconds(lambda: svc.fit(split.X, split.y)))
    svc_error, svc_auc = scores(svc, split)
    run.figure("SVC: error and AUC", [round(svc_error, 4), round(svc_auc, 4)])

    federated = models["federated"]
    sent = sum(federated.report_.bytes_sent.values())
    run.target(
        "bytes per training row, direction and sending party",
        sent / (len(split.y) * D * (PARTIES - 1)),
        1.02,
        at_most=True,
    )
    run.target("federated / pooled time", took["federated"] / took["pooled"], 1.2, at_most=True)
    run.target(
        "federated / RBFSampler time", took["federated"] / took["RBFSampler"], 1.0, at_most=True
    )
    run.target(
        "AUC beyond RBFSampler's",
        errors["federated"][1] - errors["RBFSampler"][1],
        0,
        at_most=False,
    )
    run.target("SVC / federated time", svc_seconds / took["federated"], 20, at_most=False)
    run.target("error beyond SVC's", errors["federated"][0] - svc_error, 0.003, at_most=True)
    limit(run, took["federated"], len(split.y), split.X.shape[1], federated.n_iter_)
    run.write(options.out)


def processor_seconds(function: Callable[[], Any]) -> float:
    """Time of all cores of this process for one call."""
    began = time.process_time()
    function()
    return time.process_time() - began


def limit(run: Benchmark, took: float, rows: int, columns: int, iterations: int) -> None:
    """Compare with the least that the arithmetic must cost on this machine."""
    phases = rows * D
    run.figure("projections: multiplications and additions, GFLOP", 2 * phases * columns / 1e9)
    run.figure("solver: cosines, G", 2 * iterations * phases / 1e9)
    run.figure("masks: bytes expanded by the cipher, MB", PARTIES * (PARTIES - 1) * phases / 1e6)
    run.figure("phases through the whole fit, M per second", phases / took / 1e6)


if __name__ == "__main__":
    main()
