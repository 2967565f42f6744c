"""ADMM Figures 1 (a) and 2 (a): objective and test log-loss by round, and FDML beside it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from benchmarks.charts import write_svg
from benchmarks.harness import Benchmark
from benchmarks.papers.admm import sgd
from benchmarks.papers.admm.problems import Problem, with_ones
from benchmarks.papers.admm.rounds import losses_by_round
from vertikal import ADMMClassifier
from vertikal.reporting.line_chart import Series, line_chart

Array = npt.NDArray[Any]

LEVELS = (1e-2, 1e-3, 1e-4)
EPOCHS, TRIED = 50, 10
RHOS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
NEVER = 10**9
"""More rounds than anybody runs: a level that was not reached."""


@dataclass(frozen=True)
class Trace:
    """One method: by round (or epoch) the gap to the optimum and the test log-loss."""

    name: str
    gaps: list[float]
    losses: list[float]

    def rounds_to(self, level: float) -> int:
        """The first round (from 1) whose gap is below ``level``; `NEVER` if none is."""
        below = np.flatnonzero(np.array(self.gaps) < level)
        return int(below[0]) + 1 if below.size else NEVER


def compare(run: Benchmark, problem: Problem, rounds: int, folder: Path) -> list[Trace]:
    """Three kinds of sharing and FDML against the centralised optimum; figures and two charts."""
    best, best_loss = problem.optimum()
    run.figure("centralised: objective", best)
    run.figure("centralised: test log-loss", best_loss)
    traces = [
        sharing(run, problem, "averaged", rounds, best),
        sharing(run, problem, "as published", rounds, best),
        sharing(run, problem, "averaged, rho chosen", rounds, best, best_rho(problem)),
        fdml(run, problem, best),
    ]
    for trace in traces:
        for level in LEVELS:
            rounds_to = trace.rounds_to(level)
            run.figure(
                f"{trace.name}: rounds to {level:g}",
                rounds_to if rounds_to < NEVER else f"not in {len(trace.gaps)}",
            )
        run.figure(f"{trace.name}: test log-loss at the end", trace.losses[-1])
        run.figure(f"{trace.name}: relative gap by round", short(trace.gaps))
        run.figure(f"{trace.name}: test log-loss by round", short(trace.losses))
    draw(run.name, problem, traces, best_loss, folder)
    return traces


def short(values: list[float]) -> list[float]:
    """Five digits each."""
    return [float(f"{value:.5g}") for value in values]


def sharing(
    run: Benchmark,
    problem: Problem,
    name: str,
    rounds: int,
    best: float,
    rho: float | Literal["auto"] = "auto",
) -> Trace:
    averaging = name != "as published"
    model = fitted(problem, rounds, averaging, rho)
    run.figure(f"{name}: rho", model.rho_)
    # A fitted model knows its last round only; the same rounds in one process know all.
    losses, last = losses_by_round(problem, rounds, model.rho_, averaging=averaging)
    apart = np.abs(model.decision_function(problem.X_test) - last).max()
    run.figure(f"{name}: f of the model and of the rounds in one process apart", float(apart))
    return Trace(name, [value / best - 1 for value in model.objective_], losses)


def fitted(
    problem: Problem, rounds: int, averaging: bool, rho: float | Literal["auto"]
) -> ADMMClassifier:
    model = ADMMClassifier(
        problem.parties,
        alpha=problem.penalty,
        rho=rho,
        averaging=averaging,
        tol=1e-12,
        max_iter=rounds,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is meant to run all rounds
        return model.fit(problem.X, problem.y)


def best_rho(problem: Problem) -> float:
    """The ρ with the least objective after as many rounds as FDML's step is chosen after."""
    return min(RHOS, key=lambda rho: fitted(problem, TRIED, True, rho).objective_[-1])


def fdml(run: Benchmark, problem: Problem, best: float) -> Trace:
    step = sgd.best_step(problem, TRIED)
    run.figure(f"FDML: step with the least objective after {TRIED} epochs", step)
    trained = list(islice(sgd.epochs(problem, step), EPOCHS))
    test = with_ones(problem.X_test)
    return Trace(
        "FDML",
        [sgd.objective(problem, x) / best - 1 for x in trained],
        [problem.scores(test @ x)[0] for x in trained],
    )


def draw(name: str, problem: Problem, traces: list[Trace], optimum: float, folder: Path) -> None:
    """The two panels; epochs of FDML share the axis with rounds, as in the paper."""

    def lines(kind: str) -> list[Series]:
        values = [(trace.name, getattr(trace, kind)) for trace in traces]
        return [Series(label, range(1, len(found) + 1), found) for label, found in values]

    longest = max(len(trace.losses) for trace in traces)
    centralised = Series("centralised", (1, longest), (optimum, optimum), dashed=True)
    gaps = line_chart(
        lines("gaps"),
        title=f"{problem.name}: objective above the optimum",
        x_label="round, or epoch",
        y_label="relative gap",
        log_x=True,
        log_y=True,
    )
    losses = line_chart(
        [*lines("losses"), centralised],
        title=f"{problem.name}: test log-loss",
        x_label="round, or epoch",
        y_label="log-loss",
        log_x=True,
    )
    write_svg(gaps, folder, f"{name}-objective")
    write_svg(losses, folder, f"{name}-log-loss")
