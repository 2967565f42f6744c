"""At which ε private sharing beats party 1 alone: test log-loss and AUC against ε.

    python -m benchmarks.papers.admm.epsilon --set a9a
    python -m benchmarks.papers.admm.epsilon --set fashion
    python -m benchmarks.papers.admm.epsilon --set sector

On a9a (66 + 57 columns), Fashion-MNIST and sector (three parties), the row mechanism, which
protects any one row of each party's columns, against scikit-learn on all columns and on party 1's
alone, both without noise, and against models that the parties train each by itself, added up, which
releases nothing in training. Bound, ρ, λ and the number of releases are chosen for each ε on a
quarter of the training rows, as scikit-learn's penalty is; then one model per repeat is trained on
all of them, and the test rows are looked at once. (The choice itself is not private. Who needs it
to be chooses on rows that anybody may see.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.charts import write_svg
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm import problems
from benchmarks.papers.admm.problems import Problem
from vertikal import ADMMClassifier
from vertikal.reporting.line_chart import Series, line_chart

DELTA = 1e-5
EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "a9a": {
        "bound": (3.0, 6.0, 12.0),
        "rho": (0.03, 0.06, 0.125, 0.18, 0.25, 0.5),
        "releases": (1, 2),
        "alpha": (1.0, 10.0),
    },
    "fashion": {
        "bound": (8.0, 16.0, 32.0),
        "rho": (0.125, 0.18, 0.25, 0.35),
        "releases": (1, 2),
        "alpha": (1.0, 10.0),
    },
    "sector": {
        "bound": (4.0, 8.0, 16.0),
        "rho": (0.03, 0.1, 0.3),
        "releases": (1, 2),
        "alpha": (1.0, 10.0),
    },
}
SETS: dict[str, Callable[[], Problem]] = {
    "a9a": problems.a9a,
    "fashion": problems.fashion,
    "sector": problems.sector,
}


class Choice(NamedTuple):
    """The settings of one ε."""

    bound: float
    rho: float
    releases: int
    alpha: float  # λ for the summed loss


def main() -> None:
    options = arguments(__doc__ or "", set="a9a", tries=2, repeats=5)
    if options.set not in SETS:
        raise SystemExit(f"--set must be one of {', '.join(SETS)}, got {options.set}")
    run = Benchmark(
        f"papers-admm-epsilon-{options.set}",
        {
            "delta": DELTA,
            "mechanism": "row",
            "validation": f"a quarter of the training rows, mean log-loss of {options.tries} runs",
            "repeats": options.repeats,
            "grid": GRIDS[options.set],
        },
    )
    study(run, SETS[options.set](), options.tries, options.repeats, options.out)
    run.write(options.out)


def study(run: Benchmark, problem: Problem, tries: int, repeats: int, folder: Path) -> None:
    """Choose, train and test for every ε on one set."""
    name = problem.name
    everything = problem.alone(range(problem.X.shape[1]))
    first = problem.alone(problem.columns[0])
    run.figure(f"{name}, scikit-learn, all columns: test log-loss and AUC", list(everything))
    run.figure(f"{name}, scikit-learn, party 1 alone: test log-loss and AUC", list(first))
    added = problem.added()
    run.figure(f"{name}, scikit-learn, parties by themselves: log-loss and AUC", list(added))
    validation = problem.validation()
    found = []
    for epsilon in EPSILONS:
        choice = choose(validation, epsilon, tries)
        run.figure(f"{name}, epsilon {epsilon:g}: chosen", choice._asdict())
        scores = np.array([private(problem, epsilon, choice) for _ in range(repeats)])
        means, spreads = scores.mean(axis=0).tolist(), scores.std(axis=0, ddof=1).tolist()
        for i, what in enumerate(("test log-loss", "AUC")):
            run.figure(f"{name}, epsilon {epsilon:g}: {what}, all repeats", scores[:, i].tolist())
            run.figure(
                f"{name}, epsilon {epsilon:g}: {what}, mean and deviation", [means[i], spreads[i]]
            )
        found.append(means)
    losses, areas = ([pair[i] for pair in found] for i in range(2))
    better_loss = smallest([loss < first[0] for loss in losses])
    better_area = smallest([area > first[1] for area in areas])
    run.figure(f"{name}: log-loss better than party 1 alone from epsilon", better_loss)
    run.figure(f"{name}: AUC better than party 1 alone from epsilon", better_area)
    for which, (what, values) in enumerate((("log-loss", losses), ("AUC", areas))):
        lines = {
            "all columns, no noise": everything[which],
            "party 1 alone": first[which],
            "parties by themselves, added": added[which],
        }
        draw(name, what, values, lines, folder)


def choose(validation: Problem, epsilon: float, tries: int) -> Choice:
    """The settings with the least mean log-loss on the rows held back."""

    def tried(choice: Choice) -> float:
        return float(np.mean([private(validation, epsilon, choice)[0] for _ in range(tries)]))

    grid = GRIDS[validation.name]
    return min((Choice(*values) for values in product(*grid.values())), key=tried)


def private(problem: Problem, epsilon: float, choice: Choice) -> tuple[float, float]:
    model = ADMMClassifier(
        problem.parties,
        alpha=choice.alpha / len(problem.y),
        rho=choice.rho,
        max_iter=choice.releases,
        privacy={"epsilon": epsilon, "delta": DELTA, "bound": choice.bound},
    ).fit(problem.X, problem.y)
    return problem.scores(model.decision_function(problem.X_test))


def smallest(better: list[bool]) -> float | str:
    """The least ε from which on every larger one is better too."""
    since = math.inf
    for epsilon, good in zip(reversed(EPSILONS), reversed(better), strict=True):
        if not good:
            break
        since = epsilon
    return since if math.isfinite(since) else f"not up to {EPSILONS[-1]:g}"


def draw(name: str, what: str, values: list[float], lines: dict[str, float], folder: Path) -> None:
    ends = (EPSILONS[0], EPSILONS[-1])
    chart = line_chart(
        [
            Series("private", EPSILONS, values),
            *(Series(label, ends, (level, level), dashed=True) for label, level in lines.items()),
        ],
        title=f"{name}: test {what} by epsilon",
        x_label="epsilon",
        y_label=what,
        log_x=True,
    )
    write_svg(chart, folder, f"papers-admm-epsilon-{name}-{what.lower()}")


if __name__ == "__main__":
    main()
