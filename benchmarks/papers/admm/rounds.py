"""The rounds of ADMM sharing in one process, so that every round can be tested and disturbed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.papers.admm.problems import Problem
from vertikal.losses.pointwise import LOSSES
from vertikal.solvers.design import Design
from vertikal.solvers.least_squares import least_squares
from vertikal.solvers.loss_prox import loss_prox
from vertikal.solvers.regularisers import Regulariser

Array = npt.NDArray[Any]
Disturb = Callable[[int, Array], Array]
"""A party's number and its contribution in; the contribution with noise out."""


def designs(problem: Problem, X: Any) -> list[Design]:
    """D_m of each party for rows X: centred by the training rows, the intercept at party 1."""
    found = []
    for m, columns in enumerate(problem.columns):
        chosen = np.asarray(columns)
        centre = np.asarray(problem.X[:, chosen].mean(axis=0)).ravel()
        found.append(Design(X[:, chosen], centre=centre, intercept=m == 0))
    return found


def predictions_by_round(
    problem: Problem, rho: float, *, averaging: bool, disturb: Disturb | None = None
) -> Iterator[Array]:
    """f of the test rows after each round, with the x_m that each party keeps."""
    train, test = designs(problem, problem.X), designs(problem, problem.X_test)
    curvature = rho * (len(train) if averaging else 1)
    regulariser = Regulariser(problem.penalty * len(problem.y), 0.0)
    solvers = [least_squares(D, regulariser, curvature) for D in train]
    targets, loss = problem.y[:, None], LOSSES["logistic"]
    x = [np.zeros((D.width, 1)) for D in train]
    own = [np.zeros_like(targets) for _ in train]
    z, dual, shared = (np.zeros_like(targets) for _ in range(3))
    ones = np.ones_like(targets)
    while True:
        for m, D in enumerate(train):
            x[m] = solvers[m].solve(own[m] - shared / curvature, x[m])
            own[m] = D.forward(x[m])
            if disturb is not None:
                own[m] = disturb(m, own[m])
        total = np.sum(own, axis=0)
        z = loss_prox(loss, total + dual / rho, targets, ones, rho, z)
        dual = dual + rho * (total - z)
        shared = dual + rho * (total - z)
        yield sum(D.forward(part) for D, part in zip(test, x, strict=True))[:, 0]


def losses_by_round(
    problem: Problem, rounds: int, rho: float, *, averaging: bool, disturb: Disturb | None = None
) -> tuple[list[float], Array]:
    """The test log-loss after each round, and f of the test rows after the last."""
    every = predictions_by_round(problem, rho, averaging=averaging, disturb=disturb)
    predictions = list(islice(every, rounds))
    return [problem.scores(f)[0] for f in predictions], predictions[-1]
