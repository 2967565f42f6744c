"""Secure aggregation: 10^5 values of 100 clients, and one round of all users with drop-outs.

    python -m benchmarks.scale.secagg
    python -m benchmarks.scale.secagg --data 1m

The second is a round of FedCFK on MovieLens, a tenth of the users vanishing at all stages, against
the time that its pads would take to encipher and nothing else. With ``--items`` only the kernel of
the first so many items is summed: work grows with their square.

For orientation only: Flower's SecAgg+ was reported to take 6.3 to 7.5 s for the first on another
machine of 2 cores, in its own simulation; it is not run here.
"""

from __future__ import annotations

import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from benchmarks.datasets import movielens
from benchmarks.harness import Benchmark, alternating, arguments, median, seconds
from vertikal.algorithms.gram.client_gram import ClientGram, secure_gram
from vertikal.ring.integers import Ring
from vertikal.secure.keys.keystream import Keystream
from vertikal.secure.keys.prg import fresh_key
from vertikal.secure.secagg.in_one_process import aggregate
from vertikal.secure.secagg.neighbours import plan_neighbours
from vertikal.secure.secagg.rounds import STAGES


def main() -> None:
    options = arguments(__doc__ or "", data="100k", items=100_000, repeats=3)
    run = Benchmark(f"secagg-{options.data}", vars(options) | {"out": ""})
    if options.data == "100k":
        _hundred_clients(run, options.repeats)
    pairs, *shape = movielens(options.data)
    watched = np.zeros(shape, np.uint8)
    watched[tuple(pairs.T)] = 1
    watched = watched[:, : options.items]
    users = [f"u{i:04d}" for i in range(len(watched))]
    ratings = dict(zip(users, watched, strict=True))
    drops = {u: STAGES[i % 6] for i, u in enumerate(users[: len(users) // 10])}
    run.figure("users, items", watched.shape)
    run.figure("share of the whole kernel", (watched.shape[1] / shape[1]) ** 2)
    rounds: list[ClientGram] = []
    chosen = plan_neighbours(len(users))
    protocol = partial(aggregate, plan=chosen, drops=drops)

    def whole_round() -> None:
        rounds.append(secure_gram(ratings, protocol, binary=True))

    took = run.figure("one round with a tenth dropping: seconds", seconds(whole_round))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    run.figure("peak memory, GB", peak)
    found = rounds[0]
    run.figure("survivors", len(found.survivors))
    # Counts of users are exact in floating point too, and much faster to add up.
    held = np.stack([ratings[u] for u in found.survivors]).astype(np.float64)
    run.figure("equal to the plain kernel", bool(np.array_equal(held.T @ held, found.values)))
    # What must be done at least: each client's pads and self-mask, enciphered on all cores.
    pads = len(found.survivors) * (1 + chosen.degree * (1 - len(drops) / len(users)))
    gigabytes = pads * watched.shape[1] * (watched.shape[1] + 1) / 2 * found.ring.bits / 8 / 1e9
    rate = run.figure("AES-256 in counter mode on all cores, GB/s", _keystream_rate())
    run.figure("pads and self-masks, GB", gigabytes)
    run.figure("seconds that these take at least", gigabytes / rate)
    run.figure("one round / that", took / (gigabytes / rate))
    if options.data == "100k":
        run.target("one round: seconds", took, 60, at_most=True)
        run.target("one round: GB", peak, 2, at_most=True)
    run.write(options.out)


def _keystream_rate(size: int = 1 << 18, seconds_each: float = 2.0) -> float:
    """Bytes that the cipher gives a second, into room that stays in the cache."""

    def work(_: int) -> float:
        stream, room, done = Keystream(fresh_key(), 0), memoryview(bytearray(size)), 0
        began = time.perf_counter()
        while time.perf_counter() - began < seconds_each:
            stream.fill(room)
            done += size
        return done / (time.perf_counter() - began)

    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        return sum(pool.map(work, range(cores))) / 1e9


def _hundred_clients(run: Benchmark, repeats: int) -> None:
    names = [f"c{i:03d}" for i in range(100)]
    vector = np.arange(100_000, dtype=np.uint32)
    times = alternating(
        {
            "neighbours": lambda: aggregate(
                names, lambda _: vector, ring=Ring(32), length=100_000, plan=plan_neighbours(100)
            ),
            "everybody": lambda: aggregate(names, lambda _: vector, ring=Ring(32), length=100_000),
        },
        repeats,
    )
    fast = run.figure(
        "100 clients, 10^5 values, 32 neighbours: seconds", median(times["neighbours"])
    )
    run.figure("100 clients, 10^5 values, everybody: seconds", median(times["everybody"]))
    run.target("100 clients, 10^5 values: seconds", fast, 6.3 / 5, at_most=True)


if __name__ == "__main__":
    main()
