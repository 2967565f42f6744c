"""Choosing a penalty on rows held out, on the features that are there already.

Held-out rows have no weight in a fit, and a solver has their predictions at hand all the same: so
a path of penalties takes no pass over phases, and with hidden features opens no more values than
the solver's own steps. Each fit begins at the last, and a factor of the Gram matrix serves all
penalties near its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.losses.pointwise import Loss
from vertikal.party.party import Labels
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.lbfgs import (
    Preconditioner,
    Solution,
    Sums,
    factored,
    sample_rows,
    sampled_gram,
    solve,
)
from vertikal.solvers.objective import RowObjective

Array = npt.NDArray[Any]

PATIENCE = 2
"""Penalties in a row that are no better than the best, after which no smaller ones are tried."""
WORSE_STEPS = 2
"""Steps in a row with which rows held out get worse, after which a sparing fit is given up: one may
be noise."""
FURTHER = 3
"""Penalties beyond those given that are tried at most."""
MOST_SAMPLED = 1024
"""Features by whose number rows of the Gram matrix are drawn at most, four for each: fits that
begin at one another need no better preconditioner."""
REFACTOR = 30.0
"""Ratio of penalties beyond which a factor serves no longer."""


def parts_of(targets: Array, parts: int, seed: int, *, classes: bool) -> list[Array]:
    """Cut rows into parts at random; return which rows (rows,) each of them has.

    Each class is spread evenly over the parts.
    """
    rows = len(targets)
    drawn = np.random.default_rng(seed).random(rows)
    kinds = targets @ np.arange(1, targets.shape[1] + 1) if classes else np.zeros(rows)
    place = np.empty(rows, np.int64)
    place[np.lexsort((drawn, kinds))] = np.arange(rows)
    return [place % parts == part for part in range(parts)]


@dataclass(frozen=True)
class Fitting:
    """One problem apart from its penalty: features, labels, loss, and how to solve it."""

    operator: FeatureOperator
    labels: Labels
    loss: Loss
    constant: Array  # (outputs,)
    sums: Sums
    tolerance: float
    seed: int
    most_iterations: int = 10_000
    """Iterations of all fits together."""
    most_each: int = 200
    """Iterations of one fit."""
    sparing: bool = False
    """True if each iteration opens values: the path then ends at the first penalty that is worse,
    whose fit is given up as soon as that shows, and none is tried above the first."""

    def objective(self, penalty: float, held: Array | None = None) -> RowObjective:
        """Return the problem at this penalty, without the rows held out."""
        weights = self.labels.weights
        if held is not None:
            weights = np.where(held, 0.0, weights)
            if not weights.any():
                weights = self.labels.weights
        return RowObjective(self.labels.targets, weights, self.loss, penalty, self.constant)

    def held_out_loss(self, predictions: Array, held: Array) -> float:
        """Return the mean loss of the rows held out, summed over the outputs."""
        weights = np.where(held, self.labels.weights, 0.0)
        if not weights.any():
            return float(np.inf)
        values = self.loss.value(predictions, self.labels.targets).sum(axis=1)
        return float(weights @ values / weights.sum())


@dataclass(frozen=True)
class Tried:
    """Penalty and what held-out rows say of it."""

    penalty: float
    loss: float


@dataclass(frozen=True)
class Chosen:
    """The best penalty, its fit without the rows held out last, and all that was tried."""

    penalty: float
    loss: float
    fit: Solution
    tried: tuple[Tried, ...]
    factor: Factor


class Factor:
    """Preconditioner of one problem, factored again only where penalties have moved far."""

    def __init__(self, fitting: Fitting, held: Array | None) -> None:
        operator = fitting.operator
        self._fitting, self._held = fitting, held
        sample = sample_rows(operator.rows, min(operator.width // 2, MOST_SAMPLED), fitting.seed)
        self._gram = sampled_gram(operator, fitting.objective(1.0, held), sample)
        self._made: Preconditioner | None = None
        self._at = 0.0

    def near(self, penalty: float) -> Preconditioner:
        """Return a preconditioner for about this penalty."""
        if self._made is None or max(self._at / penalty, penalty / self._at) > REFACTOR:
            gram = None if self._gram is None else self._gram.copy()
            # A little below, so that it also serves the smaller penalties that follow.
            self._at = penalty / 3
            self._made = factored(gram, self._fitting.objective(self._at, self._held))
        return self._made


def never(predictions: Array) -> bool:
    """Let a fit go on to its tolerance."""
    return False


class Worsening:
    """Test of a fit on its way: have rows held out been worse than ``loss`` for a while?"""

    def __init__(self, fitting: Fitting, held: Array, loss: float) -> None:
        self._fitting, self._held, self._loss = fitting, held, loss
        self._steps = 0

    def __call__(self, predictions: Array) -> bool:
        worse = self._fitting.held_out_loss(predictions, self._held) > self._loss
        self._steps = self._steps + 1 if worse else 0
        return self._steps >= WORSE_STEPS


def choose_penalty(fitting: Fitting, penalties: Sequence[float], held: Sequence[Array]) -> Chosen:
    """Fit along decreasing penalties, each part of ``held`` out once; return the best.

    The path ends where the loss has risen for a while, of a sparing fit at once. Where the largest
    or the smallest penalty is the best, some beyond it are tried too, while there are iterations
    left.
    """
    factors = [Factor(fitting, out) for out in held]
    starts: list[Solution | None] = [None for _ in held]
    tried: list[Tried] = []
    left = fitting.most_iterations
    best: tuple[Tried, Solution] | None = None

    def attempt(penalty: float) -> None:
        nonlocal left, best
        losses = []
        for number, out in enumerate(held):
            within = replace(fitting, most_each=max(1, min(left, fitting.most_each)))
            worse = Worsening(fitting, out, best[0].loss) if fitting.sparing and best else never
            start = fit(within, penalty, out, factors[number], starts[number], worse)
            left -= start.iterations
            starts[number] = start
            losses.append(fitting.held_out_loss(start.predictions, out))
        one = Tried(penalty, float(np.mean(losses)))
        tried.append(one)
        if best is None or one.loss < best[0].loss:
            best = one, start

    for penalty in penalties:
        since = len(tried) - tried.index(best[0]) - 1 if best else 0
        if since >= (1 if fitting.sparing else PATIENCE) or (left < 1 and tried):
            break
        attempt(penalty)
    assert best is not None
    ratio = penalties[0] / penalties[1] if len(penalties) > 1 else 1.0
    for _ in range(FURTHER):
        largest, smallest = (end(one.penalty for one in tried) for end in (max, min))
        if left < 1 or ratio <= 1 or smallest < best[0].penalty < largest:
            break
        if fitting.sparing and best[0].penalty == largest:
            break
        attempt(best[0].penalty * (ratio if best[0].penalty == largest else 1 / ratio))
    return Chosen(best[0].penalty, best[0].loss, best[1], tuple(tried), factors[-1])


def fit(
    fitting: Fitting,
    penalty: float,
    held: Array | None,
    factor: Factor,
    start: Solution | None = None,
    enough: Callable[[Array], bool] = never,
) -> Solution:
    """Fit at one penalty, begun at the solution of another, and ended early by ``enough``."""
    return solve(
        fitting.operator,
        fitting.objective(penalty, held),
        sums=fitting.sums,
        tolerance=fitting.tolerance,
        max_iterations=fitting.most_each,
        preconditioner=factor.near(penalty),
        start=start,
        enough=enough,
    )
