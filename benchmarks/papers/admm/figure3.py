"""ADMM Figures 1 (b), 2 (b) and 3: test log-loss under fixed levels of noise, with two baselines.

    python -m benchmarks.papers.admm.figure3
    python -m benchmarks.papers.admm.figure3 --form printed
    python -m benchmarks.papers.admm.figure3 --data a9a --rounds 3

The levels are those of the published study: deviations 0.03 to 3 on a9a, 0.1 to 10 on the wide sets
(Fashion-MNIST for gisette, and sector). "published" noise lies in the span of a party's columns,
equation (16), and protects nothing; "spherical" noise of the same deviation in each number is what
privacy needs. With more columns than rows the span is (nearly) everything, so that on sector there
is only the latter. The averaged form comes first; the printed one is equation (16) literally
(``mechanism="paper"`` with ``averaging=False``), for which ρ is larger so that it converges.
What each level would cost is said for coefficients of length one, which is less than they have.
Which ε a model can live with is in `epsilon`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from benchmarks.datasets import is_here
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm import problems
from benchmarks.papers.admm.convergence import short
from benchmarks.papers.admm.problems import Problem
from benchmarks.papers.admm.rounds import Disturb, designs, losses_by_round
from vertikal.privacy.accountant import epsilon_of
from vertikal.reporting.line_chart import Series, line_chart

Array = npt.NDArray[Any]

FORMS = {
    "averaged": ("papers-admm-figure3", True, 0.0625),
    "printed": ("papers-admm-eq16", False, 0.25),
}
"""Name of the results, averaging, and ρ."""
DELTA = 1e-5
WIDE = (0.1, 0.3, 1.0, 3.0, 10.0)
LEVELS = {"a9a": (0.03, 0.1, 0.3, 1.0, 3.0), "fashion": WIDE, "sector": WIDE}
BOTH = ("published", "spherical")
SETS = {
    "a9a": (problems.a9a, "a9a/a9a.xz", BOTH),
    "fashion": (problems.fashion, "fashion-mnist/train-images-idx3-ubyte.gz", BOTH),
    "sector": (problems.sector, "sector/sector.scale.xz", ("spherical",)),
}
"""Each set with its file, and the kinds of noise that differ on it."""


def main() -> None:
    options = arguments(__doc__ or "", form="averaged", rounds=30, data=",".join(LEVELS))
    if options.form not in FORMS:
        raise SystemExit(f"--form must be one of {', '.join(FORMS)}, got {options.form}")
    results, averaging, rho = FORMS[options.form]
    run = Benchmark(
        results,
        {"data": options.data, "rounds": options.rounds}
        | {"averaging": averaging, "rho": rho, "delta": DELTA},
    )
    for name in options.data.split(","):
        problem, file, kinds = SETS[name]
        if is_here(file):
            study(run, problem(), kinds, options)
        else:
            run.figure(f"{name}: left out, not at hand", file)
    run.write(options.out)


def study(run: Benchmark, problem: Problem, kinds: tuple[str, ...], options: Any) -> None:
    """All levels on one set: figures, one chart by round and one by level."""
    levels = LEVELS[problem.name]
    _, averaging, rho = FORMS[options.form]
    name, rounds = problem.name, options.rounds
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
        run.draw(options.out, rounds_chart(name, kind, traces), f"{name}-{kind}")
    for level in levels:
        cost = epsilon_of(2 / level * math.sqrt(rounds), DELTA)
        run.figure(f"{name}, deviation {level:g}: epsilon if coefficients had length one", cost)
    chart = levels_chart(name, levels, ends, everything[0], first[0])
    run.draw(options.out, chart, f"{name}-levels")


def noise(problem: Problem, kind: str, deviation: float) -> Disturb:
    """Draw what is added to a contribution, from public numbers: a study, no privacy."""
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


def rounds_chart(name: str, kind: str, traces: dict[str, list[float]]) -> str:
    return line_chart(
        [Series(level, range(1, len(found) + 1), found) for level, found in traces.items()],
        title=f"{name}: test log-loss under {kind} noise",
        x_label="round",
        y_label="log-loss",
        log_y=True,
    )


def levels_chart(
    name: str,
    levels: tuple[float, ...],
    ends: dict[str, list[float]],
    everything: float,
    first: float,
) -> str:
    ends_of = (levels[0], levels[-1])
    return line_chart(
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


if __name__ == "__main__":
    main()
