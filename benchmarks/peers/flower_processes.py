"""A whole round of Flower's SecAgg+ in several processes, with all its clients.

    from benchmarks.peers.flower_processes import flower_whole

Each process has some of the clients, and does the server's work for these: it adds up their masked
vectors, joins the shares of their secrets and draws the masks. One more passes messages on. Nobody
drops out, and there is no network.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections import defaultdict
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.peers.flower_secagg import (
    RING,
    bytes_to_ndarray,
    check_sum,
    client,
    combine_shares,
    get_parameters_shape,
    ndarrays_to_parameters,
    neighbours_of,
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
    pseudo_rand_gen,
    set_up,
)


@dataclass(frozen=True)
class FlowerRound:
    """Cost of a whole round."""

    processor: float
    wall: float


def flower_whole(
    count: int, degree: int, threshold: int, vector: Any, workers: int, limit: float
) -> FlowerRound | None:
    """Run a round of ``count`` clients; None if it takes longer than ``limit`` seconds."""
    began, mine = time.perf_counter(), time.process_time()
    context = multiprocessing.get_context("fork")
    pipes, processes = [], []
    for number in range(workers):
        here, there = context.Pipe()
        some = list(range(number, count, workers))
        process = context.Process(
            target=_work, args=(there, some, count, degree, threshold, vector), daemon=True
        )
        process.start()
        pipes.append(here)
        processes.append(process)
    try:
        spent = _lead(pipes, vector, began + limit)
    except TimeoutError:
        return None
    finally:
        for process in processes:
            process.terminate()
            process.join()
    mine = time.process_time() - mine
    return FlowerRound(spent + mine, time.perf_counter() - began)


def _lead(pipes: list[Connection], vector: Any, end: float) -> float:
    """Pass messages on from stage to stage; return the workers' processor seconds."""

    def gathered() -> list[Any]:
        found = []
        for pipe in pipes:
            if not pipe.poll(max(0.0, end - time.perf_counter())):
                raise TimeoutError
            found.append(pipe.recv())
        return found

    def joined(parts: list[Any]) -> dict[int, list[Any]]:
        whole = defaultdict(list)
        for part in parts:
            for client_number, letters in part.items():
                whole[client_number] += letters
        return whole

    def spread(letters: dict[int, Any]) -> None:
        for number, pipe in enumerate(pipes):
            some = {who: what for who, what in letters.items() if who % len(pipes) == number}
            pipe.send(some)

    keys = {who: pair for part in gathered() for who, pair in part.items()}
    for pipe in pipes:
        pipe.send(keys)
    spread(joined(gathered()))  # encrypted shares, by receiver
    total = _added(gathered())
    spread(joined(gathered()))  # shares of secrets, by the client whose secret it is
    told = gathered()
    masks = _added([part for part, _ in told])
    unmasked = parameters_mod(parameters_subtraction(parameters_mod(total, RING), masks), RING)
    check_sum(unmasked, vector)
    return sum(spent for _, spent in told)


def _work(
    pipe: Connection, mine: list[int], count: int, degree: int, threshold: int, vector: Any
) -> None:
    """Play some of the clients, and the server's part for them."""
    states, own_keys = set_up(mine, count, degree, threshold)
    pipe.send(own_keys)
    keys = pipe.recv()
    outgoing: dict[int, list[Any]] = defaultdict(list)
    for me, state in states.items():
        near = {str(peer): keys[peer] for peer in neighbours_of(me, count, degree)}
        sent = client._share_keys(state, near)
        for peer, sealed in zip(sent["dsts"], sent["ctxts"], strict=True):
            outgoing[peer].append((me, sealed))
    pipe.send(dict(outgoing))
    boxes = pipe.recv()
    parameters, total = ndarrays_to_parameters([vector]), []
    for me, state in states.items():
        sources, sealed = zip(*boxes[me], strict=True)
        box = {"srcs": list(sources), "ctxts": list(sealed)}
        sent = client._collect_masked_vectors(state, box, 1, parameters)
        total = _added([total, [bytes_to_ndarray(raw) for raw in sent["masked_params"]]])
    shape = get_parameters_shape(total)
    pipe.send(total)
    shares: dict[int, list[bytes]] = defaultdict(list)
    for me, state in states.items():
        near = neighbours_of(me, count, degree)
        sent = client._unmask(state, {"active_nids": near, "dead_nids": []})
        for owner, share in zip(sent["nids"], sent["shares"], strict=True):
            shares[owner].append(share)
    pipe.send(dict(shares))
    masks: list[Any] = []
    for held in pipe.recv().values():
        masks = _added([masks, pseudo_rand_gen(combine_shares(held), RING, shape)])
    used = resource.getrusage(resource.RUSAGE_SELF)
    pipe.send((masks, used.ru_utime + used.ru_stime))


def _added(parts: list[Any]) -> list[Any]:
    """Add up lists of arrays; empty ones are none."""
    total: list[Any] = []
    for part in parts:
        if part:
            total = parameters_addition(total, part) if total else part
    return total
