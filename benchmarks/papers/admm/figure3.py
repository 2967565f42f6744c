"""ADMM Figures 1 (b), 2 (b) and 3: test log-loss under fixed levels of noise, with two baselines.

    python -m benchmarks.papers.admm.figure3

The levels are those of the published study: deviations 0.03 to 3 on a9a, 0.1 to 10 on the wide sets
(Fashion-MNIST for gisette, and sector). "published" noise lies in the span of a party's columns,
equation (16), and protects nothing; "spherical" noise of the same deviation in each number is what
privacy needs. With more columns than rows the span is (nearly) everything, so that on sector there
is only the latter. Each is run in the averaged form, and in the form of equation (16) as printed
(``mechanism="paper"`` with ``averaging=False``), for which ρ is larger so that it converges.
What each level would cost is said for coefficients of length one, which is less than they have.
Which ε a model can live with is in `epsilon`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from benchmarks.charts import write_svg
from benchmarks.datasets import is_here
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm import problems
from benchmarks.papers.admm.convergence import short
from benchmarks.papers.admm.problems import Problem
from benchmarks.papers.admm.rounds import Disturb, designs, losses_by_round
from vertikal.privacy.accountant import epsilon_of
from vertikal.reporting.line_chart import Series, line_chart

Array = npt.NDArray[Any]

FORMS = {"averaged": (True, 0.0625), "printed": (False, 0.25)}
"""Averaging, and ρ."""
DELTA = 1e-5
FASHION_FILE = "fashion-mnist/train-images-idx3-ubyte.gz"
WIDE = (0.1, 0.3, 1.0, 3.0, 10.0)
LEVELS = {"a9a": (0.03, 0.1, 0.3, 1.0, 3.0), "fashion": WIDE, "sector": WIDE}


def main() -> None:
    options = arguments(__doc__ or "", rounds=30)
    run = Benchmark(
        "papers-admm-figure3",
        {"rounds": options.rounds, "averaging and rho by form": FORMS, "delta": DELTA},
    )
    both = ("published", "spherical")
    for form in FORMS:
        study(run, problems.a9a(), both, form, options.rounds, options.out)
        if is_here(FASHION_FILE):
            study(run, problems.fashion(), both, form, options.rounds, options.out)
        else:
            run.figure(f"fashion, {form}: left out, not at hand", FASHION_FILE)
        study(run, problems.sector(), ("spherical",), form, options.rounds, options.out)
    run.write(options.out)


def study(
    run: Benchmark, problem: Problem, kinds: tuple[str, ...], form: str, rounds: int, folder: Path
) -> None:
    """All levels on one set: figures, one chart by round and one by level."""
    levels = LEVELS[problem.name]
    averaging, rho = FORMS[form]
    name = problem.name if averaging else f"{problem.name}, {form}"
    everything = problem.alone(range(problem.X.shape[1]))
    first = problem.alone(problem.columns[0])
    run.figure(f"{name}, scikit-learn, all columns: test log-loss and AUC", list(everything))
    run.figure(f"{name}, scikit-learn, party 1 alone: test log-loss and AUC", list(first))
    plain, _ = losses_by_round(problem, rounds, rho, averaging=averaging)
    run.figure(f"{name}, no noise: test log-loss at the end", plain[-1])
    ends: dict[str, list[float]] = {}
    for kind in kinds:
        traces = {"no noise": plain}
        for level in levels:
            disturb = noise(problem, kind, level)
            losses, last = losses_by_round(
                problem, rounds, rho, averaging=averaging, disturb=disturb
            )
            loss, auc = problem.scores(last)
            run.figure(f"{name}, {kind} {level:g}: test log-loss and AUC", [loss, auc])
            run.figure(f"{name}, {kind} {level:g}: test log-loss by round", short(losses))
            traces[f"{level:g}"] = losses
            ends.setdefault(kind, []).append(loss)
        draw_rounds(name, kind, traces, folder)
    for level in levels:
        cost = epsilon_of(2 / level * math.sqrt(rounds), DELTA)
        run.figure(f"{name}, deviation {level:g}: epsilon if coefficients had length one", cost)
    draw_levels(name, levels, ends, everything[0], first[0], folder)


def noise(problem: Problem, kind: str, deviation: float) -> Disturb:
    """What is added to a contribution, from a generator of public numbers: a study, no privacy."""
    generator = np.random.default_rng(0)
    if kind == "spherical":
        return lambda m, own: own + deviation * generator.normal(size=own.shape)
    spans = [span(D.gram(), D.forward) for D in designs(problem, problem.X)]

    def published(m: int, own: Array) -> Array:
        return np.asarray(
            own + deviation * spans[m] @ generator.normal(size=(spans[m].shape[1], 1))
        )

    return published


def span(gram: Array, forward: Any) -> Array:
    """Orthonormal columns that span those of D: D·ξ of equation (16) is normal along them."""
    values, vectors = eigh(gram)
    kept = values > 1e-10 * values[-1]
    return np.asarray(forward(vectors[:, kept] / np.sqrt(values[kept])))


def draw_rounds(name: str, kind: str, traces: dict[str, list[float]], folder: Path) -> None:
    chart = line_chart(
        [Series(level, range(1, len(found) + 1), found) for level, found in traces.items()],
        title=f"{name}: test log-loss under {kind} noise",
        x_label="round",
        y_label="log-loss",
        log_y=True,
    )
    write_svg(chart, folder, f"papers-admm-figure3-{name.replace(', ', '-')}-{kind}")


def draw_levels(
    name: str,
    levels: tuple[float, ...],
    ends: dict[str, list[float]],
    everything: float,
    first: float,
    folder: Path,
) -> None:
    ends_of = (levels[0], levels[-1])
    chart = line_chart(
        [
            *(Series(f"{kind} noise", levels, losses) for kind, losses in ends.items()),
            Series("all columns, no noise", ends_of, (everything, everything), dashed=True),
            Series("party 1 alone, no noise", ends_of, (first, first), dashed=True),
        ],
        title=f"{name}: test log-loss by level of noise",
        x_label="deviation",
        y_label="log-loss",
        log_x=True,
        log_y=True,
    )
    write_svg(chart, folder, f"papers-admm-figure3-{name.replace(', ', '-')}-levels")


if __name__ == "__main__":
    main()
