"""ADMM Figure 2 on gisette, or on a wide set in its place, as Figure 1 is on a9a; three parties.

    python -m benchmarks.papers.admm.figure2
    python -m benchmarks.papers.admm.figure2 --set sector
    python -m benchmarks.papers.admm.figure2 --set gisette

The wide set in its place is Fashion-MNIST, shirt against pullover in three bands of the picture;
sector is a second one. λ = 1 for the summed loss (scikit-learn's C = 1). Figure 2 (b) is in
`figure3`.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm import problems, sgd
from benchmarks.papers.admm.convergence import EPOCHS, RHOS, compare

SETS = {
    "gisette": (problems.gisette, "gisette", "2,000, 2,000 and 1,000 at three parties"),
    "fashion": (
        problems.fashion,
        "Fashion-MNIST, shirt against pullover",
        "784 pixels, bands of 9, 10 and 9 lines at three parties",
    ),
    "sector": (
        problems.sector,
        "sector, class 12 against the rest",
        "55,197, dealt in turn to three parties",
    ),
}


def main() -> None:
    options = arguments(__doc__ or "", set="fashion", rounds=100)
    if options.set not in SETS:
        raise SystemExit(f"--set must be one of {', '.join(SETS)}, got {options.set}")
    problem, what, columns = SETS[options.set]
    run = Benchmark(
        f"papers-admm-figure2-{options.set}",
        {
            "set": what,
            "columns": columns,
            "alpha": "1/rows",
            "rounds": options.rounds,
            "rho": f"automatic, or the best of {RHOS}",
            "FDML": f"batch {sgd.BATCH}, {EPOCHS} epochs, best step of {sgd.STEPS}, over √t",
        },
    )
    averaged, published, *_ = compare(run, problem(), options.rounds, options.out)
    run.target(
        "rounds to 1e-2, averaged / as published",
        averaged.rounds_to(1e-2) / published.rounds_to(1e-2),
        1,
        at_most=True,
    )
    run.write(options.out)


if __name__ == "__main__":
    main()
