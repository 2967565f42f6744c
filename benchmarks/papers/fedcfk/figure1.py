"""Figure 1 of the FedCFK paper: how the server's kernel nears the true one over rounds.

    python -m benchmarks.papers.fedcfk.figure1 --data 100k

In each round a random part of the users takes part; the server keeps the larger count. Drawn is the
mean squared difference of the two normalised kernels, as in the paper: once with a part drawn
between 1 % and 50 % in each round, and with parts of one size. Kernels are summed in the open here,
as in `tables`.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.datasets import movielens
from benchmarks.harness import Benchmark, arguments
from vertikal.algorithms.fedcfk.fedcfk import ServerKernel
from vertikal.reporting.line_chart import Series, line_chart

SHARES = ((0.01, 0.5), (0.01, 0.01), (0.05, 0.05), (0.1, 0.1), (0.3, 0.3), (0.5, 0.5))


def main() -> None:
    options = arguments(__doc__ or "", data="100k", rounds=200, every=5)
    run = Benchmark(
        f"fedcfk-figure1-{options.data}",
        {"rounds": options.rounds, "shares": SHARES, "every": options.every, "seed": 0},
    )
    pairs, users, items = movielens(options.data)
    rated = sparse.csr_array((np.ones(len(pairs), np.int64), tuple(pairs.T)), (users, items))
    true = ServerKernel(items)
    true.improve((rated.T @ rated).toarray())
    target = true.normalised()
    generator = np.random.default_rng(0)
    lines = []
    for low, high in SHARES:
        name = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
        server, at, errors = ServerKernel(items), [], []
        for number in range(1, options.rounds + 1):
            size = round(generator.uniform(low, high) * users)
            some = rated[np.sort(generator.permutation(users)[:size])]
            server.improve((some.T @ some).toarray())
            if number == 1 or number % options.every == 0:
                at.append(number)
                errors.append(float(np.square(server.normalised() - target).mean()))
        lines.append(Series(f"{name} of users a round", at, errors))
        run.figure(
            f"{name} of users: error after the first and last round", [errors[0], errors[-1]]
        )
        run.figures[f"{name} of users: errors"] = errors
    run.figures["rounds of the errors"] = at
    run.draw(
        options.out,
        line_chart(
            lines,
            title=f"Kernel of the server against the true one (ml-{options.data})",
            x_label="rounds",
            y_label="mean squared difference",
            log_y=True,
            width=640,
        ),
    )
    run.write(options.out)


if __name__ == "__main__":
    main()
