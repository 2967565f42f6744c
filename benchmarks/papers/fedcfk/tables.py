"""Tables 1 and 2 of the FedCFK paper: ranking with the kernel of some of the users.

    python -m benchmarks.papers.fedcfk.tables --data 100k --draws 10
    python -m benchmarks.papers.fedcfk.tables --data 1m --draws 1 --shares 1,0.5 --tested 500

Hold-out: a random tenth of all ratings, whatever their stars, seed 0; or with ``--split time`` the
last tenth by time, of which ratings of 4 and 5 count (MovieLens 100k only: the other file has no
times). The paper does not define its own, so that the loss against all users on the same split is
compared, not the level; the chronological one comes to its AUC with all users. Rated items
leave the ranking; nDCG@100 divides by the ideal of min(100, relevant). Kernels are summed in the
open here: the secure sum is the same bit for bit (tests); its time is in `benchmarks.scale.secagg`.
``tested`` users are ranked for, 0 for all; the kernel is of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import movielens, movielens_100k_times
from benchmarks.harness import Benchmark, arguments
from vertikal.algorithms.fedcfk.fedcfk import ServerKernel, scores

Array = npt.NDArray[Any]
CUT = 100
LIKED = 4
"""Stars from which a rating counts, where rows are held out by time."""


def measures(values: Array, train: Array, test: Array) -> tuple[float, float, float]:
    """AUC, nDCG@100 and recall@100, mean over the users that have something held out."""
    found = []
    for user in np.flatnonzero(test.any(axis=1) & train.any(axis=1)):
        open_ = ~train[user]
        order = np.argsort(-values[user][open_], kind="stable")
        hit = test[user][open_][order]
        positive, ranks = hit.sum(), np.flatnonzero(hit) + 1
        negative = len(hit) - positive
        auc = 1 - (ranks.sum() - positive * (positive + 1) / 2) / (positive * negative)
        gain = (1 / np.log2(ranks[ranks <= CUT] + 1)).sum()
        ideal = (1 / np.log2(np.arange(1, min(CUT, positive) + 1) + 1)).sum()
        found.append((auc, gain / ideal, (ranks <= CUT).sum() / positive))
    return tuple(float(x) for x in np.mean(found, axis=0))  # type: ignore[return-value]


def main() -> None:
    options = arguments(
        __doc__ or "",
        data="100k",
        draws=10,
        alpha=0.1,
        split="random",
        shares="1,0.9,0.7,0.5,0.3",
        tested=0,
    )
    if options.split == "time" and options.data != "100k":
        raise SystemExit("--split time needs --data 100k: the other file has no times")
    name = options.data if options.split == "random" else f"{options.data}-time"
    run = Benchmark(f"fedcfk-tables-{name}", vars(options) | {"out": ""})
    pairs, users, items = movielens(options.data)
    generator = np.random.default_rng(0)
    held_out = generator.random(len(pairs)) < 0.1
    counted = np.ones(len(pairs), bool)
    if options.split == "time":
        stars, times = movielens_100k_times()
        held_out = times > np.quantile(times, 0.9)
        counted = stars >= LIKED
    train, test = np.zeros((users, items), bool), np.zeros((users, items), bool)
    train[tuple(pairs[~held_out & counted].T)] = True
    test[tuple(pairs[held_out & counted].T)] = True
    tested = slice(options.tested or None)
    positives = [np.flatnonzero(row) for row in train[tested]]
    ratings = train.astype(np.float32)  # counts below 2^24 are exact in single precision
    full: tuple[float, float, float] = (0.0, 0.0, 0.0)
    for share in map(float, options.shares.split(",")):
        results = []
        for _ in range(1 if share == 1 else options.draws):
            some = ratings[generator.permutation(users)[: round(share * users)]]
            server = ServerKernel(items)
            server.improve((some.T @ some).astype(np.int64))
            kernel = server.normalised()
            values = scores(kernel, kernel.mean(axis=1), positives, options.alpha, 1e-4)
            results.append(measures(values, train[tested], test[tested]))
        mean = tuple(float(x) for x in np.mean(results, axis=0))
        run.figure(f"{share:.0%} of users: AUC, nDCG@100, recall@100", [round(x, 4) for x in mean])
        if share == 1:
            full = mean  # type: ignore[assignment]
            if name == "100k":
                run.target("CF-KOMD, random tenth held out: AUC", mean[0], 0.93, at_most=False)
        if share == 0.5 and full[0]:
            run.target(
                "50 % of users: AUC below all users'", full[0] - mean[0], 0.015, at_most=True
            )
    run.write(options.out)


if __name__ == "__main__":
    main()
