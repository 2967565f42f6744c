"""Secure aggregation of 10^5 values from 100 clients: ours against Flower's SecAgg+, in one run.

    pip install flwr; python -m benchmarks.peers.flower_secagg

Flower's four client stages and its mask generator are called directly, one client after the other,
and its server's work is done as its workflow does it. Its simulation engine, messages and training
are left out, so what is measured for Flower is less than a round of it costs. Both sides have the
same number of neighbours and the same threshold, and nobody drops out. Flower's functions are not a
public interface: this was written against version 1.41. Its masks come of MT19937 seeded with 32
bits, ours of AES-256.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, alternating, arguments, median
from vertikal.ring.integers import Ring
from vertikal.secure.secagg.in_one_process import aggregate
from vertikal.secure.secagg.neighbours import plan_neighbours

try:
    from flwr.common import bytes_to_ndarray, ndarrays_to_parameters
    from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
    from flwr.common.secure_aggregation.crypto.symmetric_encryption import encrypt
    from flwr.common.secure_aggregation.ndarrays_arithmetic import (
        get_parameters_shape,
        parameters_addition,
        parameters_mod,
        parameters_subtraction,
    )
    from flwr.common.secure_aggregation.secaggplus_utils import (
        pseudo_rand_gen,
        share_keys_plaintext_concat,
    )

    # By its name: the package hides the module behind a function of the same name.
    client: Any = import_module("flwr.client.mod.secure_aggregation.secaggplus_mod")
except ImportError:
    client = None

RING = 1 << 32


def neighbours_of(me: int, count: int, degree: int) -> list[int]:
    """The clients that one of ``count`` shares with, itself among them: a ring of neighbours."""
    return [(me + step) % count for step in range(-degree // 2, degree // 2 + 1)]


def set_up(mine: Iterable[int], count: int, degree: int, threshold: int) -> tuple[Any, Any]:
    """Set up some of ``count`` clients: their states and their public keys."""
    settings = {
        "sample_num": count,
        "share_num": degree + 1,
        "threshold": threshold,
        "clipping_range": 8.0,
        "target_range": 1 << 22,
        "mod_range": RING,
        "max_weight": 1000.0,
    }
    states = {me: client.SecAggPlusState() for me in mine}
    for me, state in states.items():
        state.nid = me
    advertised = {me: client._setup(state, settings) for me, state in states.items()}
    return states, {me: (sent["pk1"], sent["pk2"]) for me, sent in advertised.items()}


def flower_sample(count: int, degree: int, threshold: int, vector: Any, sample: int) -> float:
    """Processor seconds of one client in a round and of the server's work for it, mean of some.

    Their neighbours' messages, which they have to decrypt, and the shares that the server joins are
    made beforehand, and so are all keys: that is not counted.
    """
    circle = {me: neighbours_of(me, count, degree) for me in range(count)}
    states, keys = set_up(circle, count, degree, threshold)
    parameters = ndarrays_to_parameters([vector])
    seed_shares = create_shares(bytes(32), threshold, degree + 1)
    key_shares = create_shares(states[0].sk1, threshold, degree + 1)
    spent = 0.0
    chosen = range(0, count, -(-count // sample))
    for me in chosen:
        state, others = states[me], [peer for peer in circle[me] if peer != me]
        began = time.process_time()
        client._share_keys(state, {str(peer): keys[peer] for peer in circle[me]})
        spent += time.process_time() - began
        sealed = [
            encrypt(
                state.ss2_dict[peer],
                share_keys_plaintext_concat(peer, me, seed_shares[0], key_shares[0]),
            )
            for peer in others
        ]
        began = time.process_time()
        box = {"srcs": others, "ctxts": sealed}
        sent = client._collect_masked_vectors(state, box, 1, parameters)
        total = [bytes_to_ndarray(raw) for raw in sent["masked_params"]]
        client._unmask(state, {"active_nids": circle[me], "dead_nids": []})
        mask = pseudo_rand_gen(combine_shares(seed_shares), RING, get_parameters_shape(total))
        parameters_subtraction(parameters_addition(total, total), mask)
        spent += time.process_time() - began
    return spent / len(chosen)


def flower_round(count: int, degree: int, threshold: int, vector: Any) -> None:
    """One round of SecAgg+ on a ring of neighbours, in this process."""
    circle = {me: neighbours_of(me, count, degree) for me in range(count)}
    states, keys = set_up(circle, count, degree, threshold)
    boxes: dict[int, tuple[list[int], list[bytes]]] = {me: ([], []) for me in circle}
    for me, state in states.items():
        sent = client._share_keys(state, {str(peer): keys[peer] for peer in circle[me]})
        for peer, sealed in zip(sent["dsts"], sent["ctxts"], strict=True):
            boxes[peer][0].append(me)
            boxes[peer][1].append(sealed)
    parameters = ndarrays_to_parameters([vector])
    total: list[Any] = []
    for me, state in states.items():
        box = {"srcs": boxes[me][0], "ctxts": boxes[me][1]}
        sent = client._collect_masked_vectors(state, box, 1, parameters)
        masked = [bytes_to_ndarray(raw) for raw in sent["masked_params"]]
        total = parameters_addition(total, masked) if total else masked
    total = parameters_mod(total, RING)
    shares: dict[int, list[bytes]] = {me: [] for me in circle}
    for me, state in states.items():
        sent = client._unmask(state, {"active_nids": circle[me], "dead_nids": []})
        for owner, share in zip(sent["nids"], sent["shares"], strict=True):
            shares[owner].append(share)
    for held in shares.values():
        mask = pseudo_rand_gen(combine_shares(held), RING, get_parameters_shape(total))
        total = parameters_subtraction(total, mask)
    unmasked = parameters_mod(total, RING)
    check_sum(unmasked, vector)


def check_sum(unmasked: list[Any], vector: Any) -> None:
    """Stop unless the sum is that of vectors which are all ``vector``, up to their rounding."""
    # The first entry carries the weights.
    found = np.corrcoef(unmasked[1].astype(np.float64), vector)[0, 1]
    if found < 0.9999:
        sys.exit(f"the masks of Flower did not cancel: correlation {found:.4f} with the plain sum")


def main() -> None:
    options = arguments(__doc__ or "", clients=100, values=100_000, repeats=5)
    if client is None:
        sys.exit("flwr is not installed: pip install flwr")
    chosen = plan_neighbours(options.clients)
    run = Benchmark(
        "peers-flower-secagg",
        {
            "clients": options.clients,
            "values": options.values,
            "neighbours": chosen.degree,
            "threshold": chosen.threshold,
            "repeats": options.repeats,
        },
    )
    names = [f"c{i:03d}" for i in range(options.clients)]
    words = np.arange(options.values, dtype=np.uint32)
    reals = np.linspace(-1, 1, options.values)
    sides: dict[str, Callable[[], Any]] = {
        "vertikal": lambda: aggregate(
            names, lambda _: words, ring=Ring(32), length=options.values, plan=chosen
        ),
        "flower": lambda: flower_round(options.clients, chosen.degree, chosen.threshold, reals),
    }
    times = alternating(sides, options.repeats)
    for name, values in times.items():
        run.figure(f"{name}: seconds, all repeats", [round(value, 3) for value in sorted(values)])
    ratio = median(times["flower"]) / median(times["vertikal"])
    run.target("Flower's seconds / ours", ratio, 5, at_most=False)
    run.write(options.out)


if __name__ == "__main__":
    main()
