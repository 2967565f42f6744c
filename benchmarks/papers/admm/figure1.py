"""ADMM Figure 1 on a9a, 66 + 57 columns: objective and test log-loss by round, and FDML beside it.

    python -m benchmarks.papers.admm.figure1

λ = 1 for the summed loss (scikit-learn's C = 1). Also the parallel form as published, so that the
default (averaged) is seen to be the one that takes fewer rounds.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm.sgd import epochs
from vertikal import ADMMClassifier

Array = npt.NDArray[Any]

CUT = 66
SHOWN = (1, 2, 5, 10, 15, 20, 30, 50, 100, 200)


def main() -> None:
    options = arguments(__doc__ or "", rounds=200)
    run = Benchmark(
        "papers-admm-figure1",
        {
            "cut": CUT,
            "penalty": "1/rows",
            "rounds": options.rounds,
            "FDML": "batch 64, step 6/√t",
        },
    )
    split = datasets.a9a()
    rows = len(split.y)
    best, best_loss = centralised(split, 1 / rows)
    run.figure("centralised: objective", best)
    run.figure("centralised: test log-loss", best_loss)
    for name, averaging in (("averaged", True), ("as published", False)):
        model = fit(split, averaging, options.rounds)
        gaps = np.array(model.objective_) / best - 1
        run.figure(f"{name}: rho", model.rho_)
        run.figure(f"{name}: objective by round", model.objective_)
        for level in (1e-2, 1e-3, 1e-4):
            run.figure(f"{name}: rounds to {level:g}", first_below(gaps, level))
        losses = {
            rounds: log_loss(split, fit(split, averaging, rounds).decision_function(split.X_test))
            for rounds in SHOWN
            if rounds <= options.rounds and averaging
        }
        run.figure(f"{name}: test log-loss by round", losses)
        if averaging:
            last = log_loss(split, model.decision_function(split.X_test))
            run.target("rounds to 1e-3 of the optimum", first_below(gaps, 1e-3), 50, at_most=True)
            run.target("rounds to 1e-4 of the optimum", first_below(gaps, 1e-4), 200, at_most=True)
            run.target("test log-loss", last, 0.3250, at_most=True)
    fdml(run, split, best)
    run.write(options.out)


def fit(split: datasets.Split, averaging: bool, rounds: int) -> ADMMClassifier:
    model = ADMMClassifier(
        {"one": range(CUT), "two": range(CUT, split.X.shape[1])},
        penalty=1 / len(split.y),
        averaging=averaging,
        tolerance=1e-12,
        max_rounds=rounds,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is meant to run all rounds
        return model.fit(split.X, split.y)


def fdml(run: Benchmark, split: datasets.Split, best: float) -> None:
    """The stochastic gradient method, epoch by epoch."""
    gaps, losses = [], []
    steps = epochs(split.X, split.y, 1 / len(split.y), batch=64, step=6.0, seed=0)
    for _, x in zip(range(50), steps, strict=False):
        f = split.X @ x[:-1] + x[-1]
        value = np.logaddexp(0, -split.y * f).mean() + (x[:-1] @ x[:-1]) / 2 / len(split.y)
        gaps.append(value / best - 1)
        losses.append(log_loss(split, split.X_test @ x[:-1] + x[-1]))
    for level in (1e-2, 1e-3):
        run.figure(f"FDML: epochs to {level:g}", first_below(np.array(gaps), level))
    run.figure("FDML: relative gap by epoch", [float(gap) for gap in gaps])
    run.figure("FDML: test log-loss by epoch", losses)


def centralised(split: datasets.Split, penalty: float) -> tuple[float, float]:
    """The optimum by Newton's method on all columns."""
    D = np.hstack((split.X, np.ones((len(split.y), 1))))
    ridge = penalty * np.append(np.ones(split.X.shape[1]), 0.0)

    def value(x: Array) -> tuple[float, Array]:
        f = D @ x
        slope = -split.y * expit(-split.y * f) / len(split.y)
        loss = np.logaddexp(0, -split.y * f).mean() + (ridge * x * x).sum() / 2
        return float(loss), D.T @ slope + ridge * x

    def hessian(x: Array, v: Array) -> Array:
        p = expit(D @ x)
        return np.asarray(D.T @ (p * (1 - p) * (D @ v)) / len(split.y) + ridge * v)

    found = minimize(
        value, np.zeros(D.shape[1]), jac=True, hessp=hessian, method="trust-ncg", tol=1e-9
    )
    x = found.x
    return float(found.fun), log_loss(split, split.X_test @ x[:-1] + x[-1])


def log_loss(split: datasets.Split, f: Array) -> float:
    return float(np.logaddexp(0, -split.y_test * f).mean())


def first_below(gaps: Array, level: float) -> int:
    """The first round (from 1) whose gap is below ``level``; a large number if none is."""
    below = np.flatnonzero(gaps < level)
    return int(below[0]) + 1 if below.size else 10**9


if __name__ == "__main__":
    main()
