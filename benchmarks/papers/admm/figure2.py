"""ADMM Figure 2 on a wide set: sector instead of gisette, three parties, as Figure 1 is on a9a.

    python -m benchmarks.papers.admm.figure2

λ = 1 for the summed loss (scikit-learn's C = 1). Figure 2 (b) is in `figure3`.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm import problems, sgd
from benchmarks.papers.admm.convergence import EPOCHS, RHOS, compare


def main() -> None:
    options = arguments(__doc__ or "", rounds=100)
    run = Benchmark(
        "papers-admm-figure2",
        {
            "set": "sector, class 12 against the rest",
            "columns": "55,197, dealt in turn to three parties",
            "penalty": "1/rows",
            "rounds": options.rounds,
            "rho": f"automatic, or the best of {RHOS}",
            "FDML": f"batch {sgd.BATCH}, {EPOCHS} epochs, best step of {sgd.STEPS}, over √t",
        },
    )
    averaged, published, *_ = compare(run, problems.sector(), options.rounds, options.out)
    run.target(
        "rounds to 1e-2, averaged / as published",
        averaged.rounds_to(1e-2) / published.rounds_to(1e-2),
        1,
        at_most=True,
    )
    run.write(options.out)


if __name__ == "__main__":
    main()
