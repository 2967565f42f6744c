"""The method that the paper compares with (FDML, Hu et al. 2019), as far as it matters here.

Every party computes its part of the predictions of a batch, the parts are summed, and each party
takes a stochastic gradient step on its own coefficients: for a linear model that is plain minibatch
SGD on all columns. Coefficients begin at random numbers, as in the paper's experiments.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from benchmarks.papers.admm.problems import Problem, with_ones

Array = npt.NDArray[Any]

BATCH = 64
STEPS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
"""Step sizes at t = 1 from which the best is taken; they fall as 1/√t."""


def epochs(problem: Problem, step: float) -> Iterator[Array]:
    """The coefficients (the intercept last) after each epoch."""
    generator = np.random.default_rng(0)
    D = with_ones(problem.X)
    x = 0.01 * generator.normal(size=D.shape[1])
    penalised = np.append(np.ones(D.shape[1] - 1), 0.0)
    count = 0
    while True:
        order = generator.permutation(len(problem.y))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            y, batch = problem.y[rows], D[rows]
            slope = -y * expit(-y * (batch @ x))
            count += 1
            x = x - step / np.sqrt(count) * (
                batch.T @ slope / len(rows) + problem.penalty * penalised * x
            )
        yield x


def objective(problem: Problem, x: Array) -> float:
    f = with_ones(problem.X) @ x
    return float(np.logaddexp(0, -problem.y * f).mean() + problem.penalty * (x[:-1] @ x[:-1]) / 2)


def best_step(problem: Problem, tried: int) -> float:
    """The step with the least training objective after ``tried`` epochs."""

    def reached(step: float) -> float:
        (x,) = islice(epochs(problem, step), tried - 1, tried)
        return objective(problem, x)

    return min(STEPS, key=reached)
