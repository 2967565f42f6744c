"""The worth of a private release on Fashion-MNIST: the same rounds with noise in place of it.

    python -m benchmarks.papers.admm.control

One release in one process, as private training does it: a first x-step from the labels, the
release, and a last x-step. "noise alone" leaves the contribution out of the release, so that
nothing about any party's columns is told; what a model has then, it has from the labels. On the
training rows held back, best of a small grid, mean of a few runs; the noise is a study's, not
secret. λ = 1 for the summed loss.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm import problems
from benchmarks.papers.admm.epsilon import DELTA
from benchmarks.papers.admm.problems import Problem, with_ones
from vertikal.algorithms.admm.design import normalised
from vertikal.losses.pointwise import LOSSES
from vertikal.privacy.accountant import tight_deviation
from vertikal.privacy.sensitivity import row_sensitivity
from vertikal.solvers.bounded_least_squares import ball_solver
from vertikal.solvers.design import Design
from vertikal.solvers.loss_prox import loss_prox
from vertikal.solvers.regularisers import Regulariser

Array = npt.NDArray[Any]

EPSILONS = (0.2, 1.0, 5.0, 40.0)
BOUNDS, RHOS = (16.0, 32.0), (0.125, 0.18, 0.25, 0.35)


def main() -> None:
    options = arguments(__doc__ or "", tries=3)
    run = Benchmark(
        "papers-admm-control",
        {"delta": DELTA, "tries": options.tries, "bound": BOUNDS, "rho": RHOS, "alpha": "1/rows"},
    )
    held = problems.fashion().validation()
    rounds = Rounds(held)
    for epsilon in EPSILONS:
        for name, told in (("contribution and noise", True), ("noise alone", False)):

            def scores(
                bound: float, rho: float, told: bool = told, epsilon: float = epsilon
            ) -> Any:
                deviation = tight_deviation(epsilon, DELTA, 1, row_sensitivity(bound))
                return held.scores(rounds(bound, rho, deviation, told))

            run.figure(f"epsilon {epsilon:g}, {name}: log-loss, AUC", best(scores, options.tries))
    run.figure(
        "contribution without noise: log-loss, AUC",
        best(lambda bound, rho: held.scores(rounds(bound, rho, 0.0, True)), 1),
    )
    run.write(options.out)


def best(scores: Callable[[float, float], Any], tries: int) -> list[float]:
    """The least mean log-loss of the grid, with its AUC."""
    means = [
        np.mean([scores(*settings) for _ in range(tries)], axis=0).tolist()
        for settings in product(BOUNDS, RHOS)
    ]
    return list(min(means))


class Rounds:
    """One release of private training on a problem, in one process."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._train, self._test = (
            [Design(part) for part in parts(problem, X)] for X in (problem.X, problem.X_test)
        )
        self._generator = np.random.default_rng(0)

    def __call__(self, bound: float, rho: float, deviation: float, told: bool) -> Array:
        """f of the test rows; without ``told`` the release holds no contribution."""
        curvature = rho * len(self._train)
        regulariser = Regulariser(1.0, 0.0)
        solvers = [ball_solver(D, regulariser, curvature, bound) for D in self._train]
        targets, loss = self._problem.y[:, None], LOSSES["logistic"]
        z, dual, total = (np.zeros_like(targets) for _ in range(3))
        own = [np.zeros_like(targets) for _ in self._train]
        x: list[Array] = []
        for _ in range(2):
            z = loss_prox(loss, total + dual / rho, targets, np.ones_like(targets), rho, z)
            dual = dual + rho * (total - z)
            shared = dual + rho * (total - z)
            x = [
                solver.solve(np.clip(part - shared / curvature, -bound, bound), np.zeros((0, 1)))
                for solver, part in zip(solvers, own, strict=True)
            ]
            own = [D.forward(part) for D, part in zip(self._train, x, strict=True)]
            noise = [deviation * self._generator.normal(size=targets.shape) for _ in own]
            total = np.sum([*own, *noise] if told else noise, axis=0)
        return np.asarray(sum(D.forward(part) for D, part in zip(self._test, x, strict=True))[:, 0])


def parts(problem: Problem, X: Array) -> list[Array]:
    """Each party's columns, rows of length one, the intercept at party 1."""
    chosen = [X[:, np.asarray(columns)] for columns in problem.columns]
    return [normalised(with_ones(part) if m == 0 else part) for m, part in enumerate(chosen)]


if __name__ == "__main__":
    main()
