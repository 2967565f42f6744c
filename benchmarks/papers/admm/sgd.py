"""The method that the paper compares with (FDML, Hu et al. 2019), as far as it matters here.

Every party computes its part of the predictions of a batch, the parts are summed, and each party
takes a stochastic gradient step on its own coefficients: for a linear model that is plain minibatch
SGD on all columns. Coefficients begin at random numbers, as in the paper's experiments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Array = npt.NDArray[Any]


def epochs(
    X: Array, y: Array, penalty: float, *, batch: int, step: float, seed: int
) -> Iterator[Array]:
    """The coefficients (the intercept last) after each epoch; ``penalty`` is λ of the mean loss."""
    generator = np.random.default_rng(seed)
    D = np.hstack((X, np.ones((len(X), 1))))
    x = 0.01 * generator.normal(size=D.shape[1])
    penalised = np.append(np.ones(X.shape[1]), 0.0)
    count = 0
    while True:
        order = generator.permutation(len(y))
        for start in range(0, len(y), batch):
            rows = order[start : start + batch]
            slope = -y[rows] * expit(-y[rows] * (D[rows] @ x))
            count += 1
            x = x - step / np.sqrt(count) * (
                D[rows].T @ slope / len(rows) + penalty * penalised * x
            )
        yield x
