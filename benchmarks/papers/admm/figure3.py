"""ADMM Figures 1 (b), 2 and 3 with privacy that holds: test log-loss against ε.

    python -m benchmarks.papers.admm.figure3

gisette, the paper's wide set, is not at hand. On a9a (66 + 57): the row mechanism over several ε
with one release, against scikit-learn on all columns and on party 1's alone; and the noise levels
of the published study as plain numbers, with the ε that each would cost. On sector's first class
against the rest (wide: 55,197 columns, 3 parties), convergence without noise.
"""

from __future__ import annotations

import lzma
import math
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm.figure1 import CUT, log_loss
from vertikal import ADMMClassifier
from vertikal.privacy.accountant import epsilon_of

EPSILONS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
LEVELS = (0.03, 0.1, 0.3, 1.0, 3.0)
DELTA, BOUND, RHO, REPEATS = 1e-5, 6.0, 0.125, 3


def main() -> None:
    options = arguments(__doc__ or "", releases=1)
    run = Benchmark(
        "papers-admm-figure3",
        {
            "delta": DELTA,
            "bound": BOUND,
            "rho": RHO,
            "releases": options.releases,
            "repeats": REPEATS,
        },
    )
    split = datasets.a9a()
    alone = baselines(run, split)
    crossed = [math.inf, math.inf]
    for epsilon in EPSILONS:
        scores = [private(split, epsilon, options.releases) for _ in range(REPEATS)]
        loss, auc = (float(value) for value in np.median(np.array(scores), axis=0))
        run.figure(f"a9a, epsilon {epsilon:g}: median test log-loss and AUC", [loss, auc])
        for which, better in enumerate((loss < alone[0], auc > alone[1])):
            crossed[which] = min(crossed[which], epsilon if better else math.inf)
    run.figure("a9a: smallest epsilon with a better log-loss than party 1 alone", crossed[0])
    run.figure("a9a: smallest epsilon with a better AUC than party 1 alone", crossed[1])
    for level in LEVELS:
        mu = 2 * BOUND / level * math.sqrt(10)
        run.figure(f"deviation {level:g} in 10 rounds: epsilon", epsilon_of(mu, DELTA))
    sector(run)
    run.write(options.out)


def baselines(run: Benchmark, split: datasets.Split) -> tuple[float, float]:
    """All columns, and party 1's alone; returns those of party 1."""
    found = (0.0, 0.0)
    for name, columns in (("all columns", split.X.shape[1]), ("party 1 alone", CUT)):
        model = LogisticRegression(max_iter=2000).fit(split.X[:, :columns], split.y)
        f = model.decision_function(split.X_test[:, :columns])
        found = (log_loss(split, f), float(roc_auc_score(split.y_test, f)))
        run.figure(f"a9a, scikit-learn, {name}: test log-loss and AUC", list(found))
    return found


def private(split: datasets.Split, epsilon: float, releases: int) -> tuple[float, float]:
    model = ADMMClassifier(
        {"one": range(CUT), "two": range(CUT, split.X.shape[1])},
        penalty=1 / len(split.y),
        rho=RHO,
        max_rounds=releases,
        privacy={"epsilon": epsilon, "delta": DELTA, "bound": BOUND},
    ).fit(split.X, split.y)
    f = model.decision_function(split.X_test)
    return log_loss(split, f), float(roc_auc_score(split.y_test, f))


def sector(run: Benchmark) -> None:
    """A wide, sparse set: rounds to convergence by conjugate gradients."""
    with lzma.open(datasets._file("sector/sector.scale.xz")) as file:
        X, labels = load_svmlight_file(file, n_features=55197)
    y = np.where(labels == labels[0], 1.0, -1.0)
    model: Any = ADMMClassifier(3, penalty=1 / len(y), max_rounds=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    expected = LogisticRegression(max_iter=2000, tol=1e-8).fit(X, y)
    f = expected.decision_function(X)
    best = np.logaddexp(0, -y * f).mean() + np.square(expected.coef_).sum() / 2 / len(y)
    run.figure("sector: rounds", model.n_iter_)
    run.figure("sector: relative gap at the end", float(model.objective_[-1] / best - 1))


if __name__ == "__main__":
    main()
