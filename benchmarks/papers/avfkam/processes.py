"""The parties of a benchmark as real processes over mutual TLS on loopback, some of them slow.

The processes are started and connected once; each `run` is one training run with settings of its
own. A party is slowed by an observer of its clock, in the thread that makes its updates: it sleeps
a multiple of the processor time that this thread has used since, or a fixed time per update. The
threads that answer the others' requests are not slowed, as in the public code of AFSGD-VP, where
the straggler's listener does not sleep either; AVFKAM's own code is not public. A party whose
*answers* are slow holds up everybody, since f needs everybody's part. Each process keeps to one
core, in turn, so that a party's products run in the thread whose time is measured.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from vertikal.algorithms.kernel_machine import avfkam
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings
from vertikal.algorithms.kernel_machine.shard import Training
from vertikal.compute.threads import one_blas_thread
from vertikal.data.tables import Table
from vertikal.mesh.network import NetworkMesh
from vertikal.node.config.federation_file import FederationFile, entry_of
from vertikal.party.party import Labels, Party, digest
from vertikal.secure.keys.identity import Identity

PATIENCE = 900.0


@dataclass(frozen=True)
class Pace:
    """Delay of a party after each of its updates."""

    multiple: float = 0.0  # of its own compute time
    seconds: float = 0.0


class Slowed:
    """An observer that sleeps in the thread that makes the updates."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._used = time.thread_time()

    def begin(self, party: str, stage: str, total: int | None) -> None:
        self._used = time.thread_time()

    def advance(self, party: str, stage: str, amount: int, note: str) -> None:
        if stage != "solve" or not amount:
            return  # only after this party's own updates
        time.sleep(self._pace.multiple * (time.thread_time() - self._used) + self._pace.seconds)
        self._used = time.thread_time()

    def end(self, party: str, stage: str, seconds: float) -> None:
        pass


@dataclass(frozen=True)
class Result:
    """Report of one party after a run."""

    training: Training
    solve_seconds: float


class Processes:
    """One process per party, each with its own columns; label parties are named by the settings."""

    def __init__(self, names: tuple[str, ...], X: Any, y: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        entries = []
        for name in names:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{probe.getsockname()[1]}"
            identity = Identity.create(name)
            identity.save(folder / f"{name}.key", folder / f"{name}.crt")
            entries.append(entry_of(identity, address))
        (folder / "federation.toml").write_text("\n".join(entries))
        targets = np.where(y > 0, 1.0, -1.0)[:, None]
        self._pipes: dict[str, Connection] = {}
        self._children = []
        cores = sorted(os.sched_getaffinity(0))
        # Sliced, since columns may be sparse.
        edges = np.linspace(0, X.shape[1], len(names) + 1).astype(int)
        blocks = [X[:, start:end] for start, end in itertools.pairwise(edges)]
        for place, (name, block) in enumerate(zip(names, blocks, strict=True)):
            here, there = context.Pipe()
            core = cores[place % len(cores)]
            child = context.Process(
                target=_serve, args=(there, str(folder), name, block, targets, core), daemon=True
            )
            child.start()
            self._pipes[name] = here
            self._children.append(child)
        for name, pipe in self._pipes.items():
            self._hear(name, pipe)

    def run(
        self, settings: AvfkamSettings, paces: Mapping[str, Pace] | None = None
    ) -> dict[str, Result]:
        """One training run, by party; ``paces`` of the parties that are slowed."""
        for name, pipe in self._pipes.items():
            pipe.send((settings, (paces or {}).get(name, Pace())))
        return {name: self._hear(name, pipe) for name, pipe in self._pipes.items()}

    def _hear(self, name: str, pipe: Connection) -> Any:
        if not pipe.poll(PATIENCE):
            raise TimeoutError(f"{name}: nothing within {PATIENCE:g} s")
        answer = pipe.recv()
        if isinstance(answer, str) and answer != "ready":
            raise RuntimeError(f"{name}: {answer}")
        return answer

    def close(self) -> None:
        for child in self._children:
            child.terminate()
            child.join()
        self._folder.cleanup()


def _serve(pipe: Connection, folder: str, name: str, block: Any, targets: Any, core: int) -> None:
    os.sched_setaffinity(0, {core})
    files = Path(folder)
    federation = FederationFile.load(files / "federation.toml")
    identity = Identity.load(files / f"{name}.key", files / f"{name}.crt")
    mesh = NetworkMesh(
        name,
        federation.addresses(),
        federation.credentials(identity),
        job="bench",
        version="1",
        deadline=PATIENCE,
    )
    mesh.connect()
    pipe.send("ready")
    labels = Labels(targets, np.ones(len(targets)))
    while True:
        settings, pace = pipe.recv()
        try:
            pipe.send(_train(mesh, block, labels, settings, pace))
        except BaseException as error:
            pipe.send(f"{type(error).__name__}: {error}")
            raise


def _train(
    mesh: NetworkMesh, block: Any, labels: Labels, settings: AvfkamSettings, pace: Pace
) -> Result:
    columns = tuple(str(i) for i in range(block.shape[1]))
    with one_blas_thread():
        party = Party(
            mesh,
            Table(mesh.me, columns, block),
            label_parties=settings.label_parties,
            labels=labels if mesh.me in settings.label_parties else None,
            secret=mesh.me.encode().ljust(32),
            job="bench",
            settings_digest=digest(settings),
            version="1",
            observer=Slowed(pace),
        )
        shard = avfkam.train(party, settings)
    solve = party.clock.stages.get("solve")
    return Result(shard.training, solve.seconds if solve else 0.0)
