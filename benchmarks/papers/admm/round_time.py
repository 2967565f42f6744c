"""One round of ADMM sharing on 10⁵ × 500, 4 parties, against the same linear algebra centrally.

    python -m benchmarks.papers.admm.round_time

Centrally: one process, no messages; for each party's columns the two products with D_m and the
solve, then the z-step. Both may use all cores: the parties run side by side with one BLAS thread
each, the central one lets BLAS use its own. The time of a round is the slope between runs of few
and of many rounds, so that set-up cancels.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import Benchmark, arguments, median, seconds
from vertikal import ADMMClassifier
from vertikal.losses.pointwise import LOSSES
from vertikal.solvers.loss_prox import loss_prox

PARTIES, COLUMNS, RHO = 4, 500, 0.0625


def main() -> None:
    options = arguments(__doc__ or "", rows=100_000, repeats=3, few=2, many=12)
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    run = Benchmark("papers-admm-round-time", settings | {"columns": COLUMNS, "parties": PARTIES})
    generator = np.random.default_rng(0)
    X = generator.normal(size=(options.rows, COLUMNS))
    y = np.where(X[:, 0] + generator.normal(size=options.rows) > 0, 1.0, -1.0)
    federated, central = [], []
    for _ in range(options.repeats):
        federated.append(slope(lambda n: fit(X, y, n), options.few, options.many))
        central.append(slope(lambda n: plain(X, y, n), options.few, options.many))
    run.figure("federated: seconds per round, all repeats", federated)
    run.figure("central: seconds per round, all repeats", central)
    run.target("federated / central", median(federated) / median(central), 1.5, at_most=True)
    run.write(options.out)


def slope(work: Any, few: int, many: int) -> float:
    return (seconds(lambda: work(many)) - seconds(lambda: work(few))) / (many - few)


def fit(X: Any, y: Any, rounds: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ADMMClassifier(PARTIES, rho=RHO, tol=1e-12, max_iter=rounds).fit(X, y)


def plain(X: Any, y: Any, rounds: int) -> None:
    """The averaged form in one process."""
    blocks = np.array_split(X, PARTIES, axis=1)
    blocks = [np.ascontiguousarray(block) for block in blocks]
    c = PARTIES * RHO
    factors = [cho_factor(0.1 * np.eye(D.shape[1]) + c * D.T @ D) for D in blocks]
    rows = (len(y), 1)
    own = [np.zeros(rows) for _ in blocks]
    z, dual, shared = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for _ in range(rounds):
        for m, D in enumerate(blocks):
            x = cho_solve(factors[m], D.T @ (c * own[m] - shared))
            own[m] = D @ x
        total = np.sum(own, axis=0)
        ones = np.ones(rows)
        z = loss_prox(LOSSES["logistic"], total + dual / RHO, y[:, None], ones, RHO, z)
        dual = dual + RHO * (total - z)
        shared = dual + RHO * (total - z)


if __name__ == "__main__":
    main()
