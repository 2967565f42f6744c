"""A real aggregation server under load: clients in several processes that drop out, lag and cheat.

    python -m benchmarks.scale.aggregation
    python -m benchmarks.scale.aggregation --data 100k

Every client is a task with its own TLS connection, key and list of opened rounds, in ``--workers``
processes, against one `vertikal aggregate serve`. In each of the six stages of each round a share
``--drop`` of the clients that are left hangs up; one in a hundred is slow, one sends garbage, one
sends a message twice and one the message of an earlier round. After each round the server's sum is
compared with the plain sum over the survivors that it announced. Where a member of the committee
vanishes with its coin, keys and coins are begun anew without it; whoever has lived through these
two stages does not vanish in them again. ``--dropping`` is what the server plans neighbours by.

Then Flower's SecAgg+ (`pip install flwr`) has as many clients as the last sum of ours, with vectors
of the same length and the neighbours and threshold that we plan for so many; neither side has all
pairs. It has no network, drop-outs or cheats. Compared are the processor seconds of all processes,
ours with those of clients that dropped out. ``--flower`` says how:

    few      a whole round of both with ``--few`` clients of ours, and a sample of the many; so few
             have few neighbours, so that only half as many drop out
    whole    a whole round of Flower with as many as the last sum of the many; if it takes longer
             than ``--limit`` seconds it is given up, and a sample taken
    sample   ``--sample`` of Flower's clients do their part, the server does its part for these, and
             their processor seconds are multiplied: all clients cost the same
    none     nothing

With ``--data 100k`` the clients are the 943 users of MovieLens 100k, nobody drops out, and one
round is compared with the same round in one process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, arguments, median
from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.device_folder import ServerAddress, make_authority, sign_for
from vertikal.aggregation.many_clients import TaskClient
from vertikal.aggregation.messages import head
from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.server.aggregation_server import read_status
from vertikal.aggregation.task import Task
from vertikal.errors import VertikalError
from vertikal.secure.keys.identity import Identity
from vertikal.secure.secagg.client_keys import SigningKey
from vertikal.secure.secagg.neighbours import NeighbourPlan, plan_neighbours
from vertikal.secure.secagg.rounds import STAGES

TICKS = os.sysconf("SC_CLK_TCK")
SLOW = 0.5
FEW_ROUNDS = 3
PATIENCE = 900.0
"""Seconds that a client stays, if its round is given up and no other opens."""


class Vanished(Exception):
    """A client hangs up."""


def numbers_of(name: str, rows: int) -> Any:
    """Ratings of a simulated client, which follow from its name."""
    return np.random.default_rng(list(name.encode())).integers(0, 2, rows)


def acting(name: str, turn: int, drop: float, kept: dict[str, bytes]) -> Any:
    """Decide what a client does with its answers: most send them, some vanish, a few cheat."""
    draws = np.random.default_rng([turn, *name.encode()])
    fate = draws.random()
    vanishes = {stage: draws.random() < drop for stage in STAGES}

    def act(stage: str, frame: bytes) -> list[bytes]:
        if vanishes[stage]:
            raise Vanished
        if fate < 0.01:
            return [head(60, frame[4]) + bytes(60)]
        if fate < 0.02:
            return [frame + frame]
        if fate < 0.03 and stage in kept:
            return [kept[stage]]
        kept.setdefault(stage, frame)
        return [frame]

    return act if drop else lambda stage, frame: [frame]


def work(
    pipe: Connection, clients: list[TaskClient], rows: int, drop: float, given: dict[str, Any]
) -> None:
    """Take part with all clients of this process in one round after another, as the pipe says."""
    kept: dict[str, dict[str, bytes]] = {one.ticket.name: {} for one in clients}

    async def one(client: TaskClient, turn: int) -> tuple[int, tuple[str, ...]]:
        name = client.ticket.name
        act = acting(name, turn, drop, kept[name])

        def numbers(task: Task) -> Contribution:
            return Contribution(given[name] if given else numbers_of(name, rows), task)

        try:
            return await client.take_part(numbers, act, PATIENCE), client.survivors
        except (Vanished, VertikalError, OSError, asyncio.IncompleteReadError):
            return 0, ()

    async def together(turn: int) -> list[tuple[int, tuple[str, ...]]]:
        return await asyncio.gather(*(one(client, turn) for client in clients))

    while (turn := pipe.recv()) is not None:
        done = [(count, who) for count, who in asyncio.run(together(turn)) if count]
        traffic = sum(one.sent for one in clients), sum(one.received for one in clients)
        mine = resource.getrusage(resource.RUSAGE_SELF)
        used = mine.ru_utime + mine.ru_stime
        pipe.send((len(done), done[0][1] if done else (), traffic, used, mine.ru_maxrss))


def processor_seconds(number: int) -> float:
    """Processor time of another process so far."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Load:
    """A server process, and worker processes full of clients."""

    def __init__(self, root: Path, options: Any, names: list[str], rows: int, given: Any) -> None:
        self.store = root / "store"
        identity = Identity.create("load")
        identity.save(root / "load.key", root / "load.crt")
        authority = make_authority(root / "authority")
        (root / "server.toml").write_text(
            'name = "load"\nlisten = "127.0.0.1:0"\nkey = "load.key"\ncertificate = "load.crt"\n'
            'authority = "authority/authority.pub"\n'
            f'[task]\nkind = "columns"\nrows = {rows}\n'
            f"[rounds]\nopens = {len(names)}\nfewest = {len(names) // 4}\ngather = 0.0\n"
            f"deadline = {options.deadline}\ndropping = {options.dropping}\n"
            f"uploads = {options.uploads}\nhourly_connections = 100000\n"
        )
        command = [sys.executable, "-m", "vertikal", "aggregate", "serve", "server.toml"]
        self.server = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
        line = self.server.stdout.readline() if self.server.stdout else ""
        found = re.search(r"is ready at port (\d+)", line)
        if found is None:
            sys.exit(f"the server did not start: {line}")
        address = ServerAddress(
            "load", f"127.0.0.1:{found[1]}", identity.certificate.fingerprint, authority.public
        )
        policy = RoundPolicy(fewest=len(names) // 4)
        clients = []
        for name in names:
            key = SigningKey.fresh()
            ticket = sign_for(authority, address, name, key.public)
            clients.append(TaskClient(address, ticket, key, policy, OpenedRounds()))
        for one in clients[::100] if options.drop else []:
            one.pause = SLOW
        context = multiprocessing.get_context("fork")
        self.pipes, self.processes = [], []
        for number in range(options.workers):
            mine, theirs = context.Pipe()
            part = clients[number :: options.workers]
            process = context.Process(
                target=work, args=(theirs, part, rows, options.drop, given), daemon=True
            )
            process.start()
            self.pipes.append(mine)
            self.processes.append(process)

    def round(self, turn: int) -> dict[str, Any]:
        """Run one round, and describe it."""
        before = processor_seconds(self.server.pid)
        for pipe in self.pipes:
            pipe.send(turn)
        told = [pipe.recv() for pipe in self.pipes]
        time.sleep(1.5)  # the status is written once a second
        status = read_status(self.store)
        (kernel,) = (self.store / "kernel").glob("*.npy")
        return {
            "record": status.rounds[0],
            "ended well": sum(one[0] for one in told),
            "survivors": next((one[1] for one in told if one[1]), ()),
            "bytes": np.sum([one[2] for one in told], axis=0),
            "server": processor_seconds(self.server.pid) - before,
            "clients": sum(one[3] for one in told),
            "memory": status.memory_mb,
            "kernel": np.load(kernel),
        }

    def end(self) -> None:
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(20.0)
        self.server.terminate()
        self.server.wait(20.0)


def main() -> None:
    options = arguments(
        __doc__ or "",
        clients=1000,
        rounds=10,
        rows=140,
        workers=3,
        drop=0.1,
        dropping=0.28,
        deadline=120.0,
        uploads=32,
        data="",
        name="load",
        flower="few",
        few=200,
        sample=16,
        limit=3600.0,
    )
    if options.flower not in ("few", "whole", "sample", "none"):
        sys.exit(f"--flower must be few, whole, sample or none, got {options.flower}")
    if options.data:
        options.drop, options.dropping, options.rounds, options.flower = 0.0, 0.15, 1, "none"
    if options.flower != "none":
        from benchmarks.peers.flower_secagg import client

        if client is None:
            sys.exit("flwr is not installed: pip install flwr, or --flower none")
    run = Benchmark(f"aggregation-{options.data or options.name}", vars(options) | {"out": ""})
    if options.data:
        _movielens(run, options)
    else:
        _load(run, options)
    run.write(options.out)


@dataclass(frozen=True)
class Rounds:
    """Rounds of so many clients: the last one, and what all took."""

    last: dict[str, Any]
    exact: int
    seconds: list[float]
    processor: list[float]
    traffic: Any  # bytes sent and received by a client in the last round

    @property
    def survivors(self) -> int:
        return len(self.last["survivors"])


def _rounds(options: Any, clients: int, rounds: int) -> Rounds:
    """Let clients take part in one round after another."""
    names = [f"c{i:05d}" for i in range(clients)]
    columns = {name: numbers_of(name, options.rows) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        load = Load(Path(folder), options, names, options.rows, {})
        seconds, used, exact = [], [], 0
        before_clients, before_bytes = 0.0, np.zeros(2)
        for turn in range(rounds):
            told = load.round(turn)
            record = told["record"]
            held = np.stack([columns[name] for name in told["survivors"]], axis=1)
            exact += bool(
                record["state"] == "finished" and np.array_equal(told["kernel"], held @ held.T)
            )
            seconds.append(record["seconds"])
            spent = told["clients"] - before_clients
            before_clients = told["clients"]
            used.append(told["server"] + spent)
            traffic = (told["bytes"] - before_bytes) / len(names)
            before_bytes = told["bytes"]
            print(
                f"round {turn + 1}: {record['state']}, {record['survivors']} in the sum, dropped "
                f"{json.dumps(record['dropped'])}, {record['seconds']:.1f} s, processor "
                f"{told['server']:.1f} s server and {spent:.1f} s clients",
                flush=True,
            )
        load.end()
    return Rounds(told, exact, seconds, used, traffic)


def _load(run: Benchmark, options: Any) -> None:
    found = _rounds(options, options.clients, options.rounds)
    run.figure("rounds whose sum is the plain sum over the survivors", found.exact)
    run.figure("survivors of the last round", found.survivors)
    run.figure("dropped in the last round, by stage", found.last["record"]["dropped"])
    run.figure("seconds a round, median", median(found.seconds))
    run.figure("seconds of all rounds", [round(one, 1) for one in found.seconds])
    ours = run.figure(
        "processor seconds a round, server and clients, median", median(found.processor)
    )
    run.figure("processor seconds of the server, last round", found.last["server"])
    run.figure("bytes that a client sends a round, mean", float(found.traffic[0]))
    run.figure("bytes that a client receives a round, mean", float(found.traffic[1]))
    run.figure("peak memory of the server, MB", found.last["memory"])
    run.target("exact sums / rounds", found.exact / options.rounds, 1.0, at_most=False)
    if options.flower == "few":
        calmer = argparse.Namespace(**vars(options) | {"drop": options.drop / 2})
        few = _rounds(calmer, options.few, FEW_ROUNDS)
        name = f"with {options.few} clients"
        run.figure(f"{name}: survivors of the last round", few.survivors)
        few_ours = run.figure(f"{name}: processor seconds a round, median", median(few.processor))
        theirs = _flower_whole(run, options, few.survivors)
        if theirs is not None:
            run.target(
                f"{name}: Flower's processor seconds, whole round / ours",
                theirs / few_ours,
                10,
                at_most=False,
            )
    theirs = None
    if options.flower == "whole":
        theirs = _flower_whole(run, options, found.survivors)
        if theirs is not None:
            run.target(
                "Flower's processor seconds, whole round / ours", theirs / ours, 10, at_most=False
            )
    if options.flower != "none" and theirs is None:
        sampled = _flower_sample(run, options, found.survivors)
        run.target(
            f"Flower's processor seconds, extrapolated from {options.sample} clients / ours",
            sampled / ours,
            10,
            at_most=False,
        )


def _flower_whole(run: Benchmark, options: Any, clients: int) -> float | None:
    """Processor seconds of a whole round of Flower, if the limit allows it."""
    from benchmarks.peers.flower_processes import flower_whole

    plan, vector = _flowers_part(options, clients)
    found = flower_whole(
        clients, plan.degree, plan.threshold, vector, options.workers, options.limit
    )
    name = f"Flower, whole round of {clients} clients"
    if found is None:
        run.figure(f"{name}: given up after seconds", options.limit)
        return None
    run.figure(f"{name}: neighbours, threshold", [plan.degree, plan.threshold])
    run.figure(f"{name}: seconds", found.wall)
    return float(run.figure(f"{name}: processor seconds", found.processor))


def _flower_sample(run: Benchmark, options: Any, clients: int) -> float:
    """Processor seconds of a round of Flower, by some of its clients."""
    from benchmarks.peers.flower_secagg import flower_sample

    plan, vector = _flowers_part(options, clients)
    each = flower_sample(clients, plan.degree, plan.threshold, vector, options.sample)
    name = f"Flower, extrapolated from {options.sample} to {clients} clients: processor seconds"
    return float(run.figure(name, clients * each))


def _flowers_part(options: Any, clients: int) -> tuple[NeighbourPlan, Any]:
    """The plan of ours for so many clients, and a vector as long as ours."""
    plan = plan_neighbours(clients, dropping=options.dropping)
    return plan, np.linspace(-1, 1, options.rows * (options.rows + 1) // 2)


def _movielens(run: Benchmark, options: Any) -> None:
    from benchmarks.datasets import movielens
    from vertikal.algorithms.gram.client_gram import secure_gram
    from vertikal.secure.secagg.in_one_process import aggregate

    pairs, *shape = movielens(options.data)
    watched = np.zeros(shape, np.uint8)
    watched[tuple(pairs.T)] = 1
    names = [f"u{i:04d}" for i in range(len(watched))]
    ratings = dict(zip(names, watched, strict=True))
    whole = watched.T.astype(np.float64) @ watched
    run.figure("users, items", watched.shape)
    with tempfile.TemporaryDirectory() as folder:
        load = Load(Path(folder), options, names, watched.shape[1], ratings)
        told = load.round(0)
        load.end()
    record = told["record"]
    run.figure("equal to the plain kernel", bool(np.array_equal(told["kernel"], whole)))
    wall = run.figure("over loopback: seconds", record["seconds"])
    ours = run.figure("over loopback: processor seconds", told["server"] + told["clients"])
    run.figure("over loopback: processor seconds of the server", told["server"])
    run.figure("peak memory of the server, MB", told["memory"])
    began, clock = time.process_time(), time.perf_counter()
    plan = plan_neighbours(len(names))
    found = secure_gram(ratings, partial(aggregate, plan=plan), binary=True)
    inside = run.figure("in one process: processor seconds", time.process_time() - began)
    clock = run.figure("in one process: seconds", time.perf_counter() - clock)
    run.figure("both are equal", bool(np.array_equal(found.values, told["kernel"])))
    run.target("seconds over loopback / in one process", wall / clock, 2, at_most=True)
    run.target("processor seconds, likewise", ours / inside, 2, at_most=True)


if __name__ == "__main__":
    main()
