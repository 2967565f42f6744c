"""ADMM Figure 1 on a9a, 66 + 57 columns: objective and test log-loss by round, and FDML beside it.

    python -m benchmarks.papers.admm.figure1

λ = 1 for the summed loss (scikit-learn's C = 1). Also the parallel form as published, so that the
default (averaged) is seen to be the one that takes fewer rounds. Figure 1 (b) is in `figure3`.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm import problems, sgd
from benchmarks.papers.admm.convergence import EPOCHS, RHOS, compare


def main() -> None:
    options = arguments(__doc__ or "", rounds=200)
    run = Benchmark(
        "papers-admm-figure1",
        {
            "columns": "66 + 57",
            "alpha": "1/rows",
            "rounds": options.rounds,
            "rho": f"automatic, or the best of {RHOS}",
            "FDML": f"batch {sgd.BATCH}, {EPOCHS} epochs, best step of {sgd.STEPS}, over √t",
        },
    )
    averaged, published, *_ = compare(run, problems.a9a(), options.rounds, options.out)
    run.target("rounds to 1e-3 of the optimum", averaged.rounds_to(1e-3), 50, at_most=True)
    run.target("rounds to 1e-4 of the optimum", averaged.rounds_to(1e-4), 200, at_most=True)
    run.target("test log-loss", averaged.losses[-1], 0.3250, at_most=True)
    run.target(
        "rounds to 1e-3, averaged / as published",
        averaged.rounds_to(1e-3) / published.rounds_to(1e-3),
        1,
        at_most=True,
    )
    run.write(options.out)


if __name__ == "__main__":
    main()
