"""FDSKL on a9a, 4 parties: processes over mutual TLS against threads on the local mesh.

    python -m benchmarks.peers.a9a_processes

The processes are started, connected and given their columns before the clock starts; what is timed
is the program itself, from the key agreement to the last shard. Both ways take turns; the figure
that counts is the median of their ratios.
"""

from __future__ import annotations

import multiprocessing
import socket
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import datasets
from benchmarks.harness import Benchmark, alternating, arguments, median
from vertikal.algorithms.kernel_machine import fdskl
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.compute.threads import one_blas_thread
from vertikal.data.tables import Table
from vertikal.mesh import Mesh, local_meshes
from vertikal.mesh.network import NetworkMesh
from vertikal.mesh.party_threads import run_in_threads
from vertikal.node.config.federation_file import FederationFile, entry_of
from vertikal.party.party import Labels, Party, digest
from vertikal.secure.keys.identity import Identity

NAMES = ("one", "two", "three", "four")


def train(mesh: Mesh, block: Any, y: Any, settings: FdsklSettings) -> Any:
    """One party's part; the label party returns its coefficients."""
    labels = Labels(y[:, None], np.ones(len(y))) if mesh.me == NAMES[0] else None
    columns = tuple(str(i) for i in range(block.shape[1]))
    with one_blas_thread():
        party = Party(
            mesh,
            Table(mesh.me, columns, block),
            label_parties=NAMES[:1],
            labels=labels,
            secret=mesh.me.encode().ljust(32),
            job="bench",
            settings_digest=digest(settings),
            version="1",
        )
        return fdskl.train(party, settings).coefficients


class Processes:
    """Four processes that train as often as they are told to, on one mesh each time."""

    def __init__(self, blocks: Any, y: Any, settings: FdsklSettings) -> None:
        context = multiprocessing.get_context("spawn")
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        entries = []
        for name in NAMES:
            identity = Identity.create(name)
            identity.save(folder / f"{name}.key", folder / f"{name}.crt")
            entries.append(entry_of(identity, address if name == NAMES[0] else None))
        (folder / "federation.toml").write_text("\n".join(entries))
        self._pipes, self._children = [], []
        for name, block in zip(NAMES, blocks, strict=True):
            here, there = context.Pipe()
            child = context.Process(
                target=_serve, args=(there, str(folder), name, block, y, settings), daemon=True
            )
            child.start()
            self._pipes.append(here)
            self._children.append(child)
        for pipe in self._pipes:
            pipe.recv()

    def run(self) -> Any:
        for pipe in self._pipes:
            pipe.send("go")
        first, *_ = [pipe.recv() for pipe in self._pipes]
        return first

    def close(self) -> None:
        for child in self._children:
            child.terminate()
            child.join()
        self._folder.cleanup()


def _serve(
    pipe: Connection, folder: str, name: str, block: Any, y: Any, settings: FdsklSettings
) -> None:
    files = Path(folder)
    federation = FederationFile.load(files / "federation.toml")
    identity = Identity.load(files / f"{name}.key", files / f"{name}.crt")
    mesh = NetworkMesh(
        name, federation.addresses(), federation.credentials(identity), job="bench", version="1"
    )
    mesh.connect()
    pipe.send("ready")
    while pipe.recv():
        pipe.send(train(mesh, block, y, settings))


def run_threads(blocks: Any, y: Any, settings: FdsklSettings) -> Any:
    held = dict(zip(NAMES, blocks, strict=True))
    ended = run_in_threads(
        local_meshes(NAMES), lambda mesh: train(mesh, held[mesh.me], y, settings)
    )
    return ended.results[NAMES[0]]


def main() -> None:
    options = arguments(__doc__ or "", repeats=5, directions=1024, rows=32561)
    split = datasets.a9a().head(options.rows)
    blocks = np.array_split(split.X, len(NAMES), axis=1)
    settings = FdsklSettings(
        parties=NAMES,
        label_parties=NAMES[:1],
        n_components=options.directions,
        bandwidth=5.0,
        alpha=1e-5,
    )
    bench = Benchmark("peers-a9a-processes", {"parties": len(NAMES)} | vars(options) | {"out": ""})
    processes = Processes(blocks, split.y, settings)
    try:
        same = np.array_equal(processes.run(), run_threads(blocks, split.y, settings))
        bench.figure("same coefficients, bit for bit", bool(same))
        times = alternating(
            {
                "processes over TLS": processes.run,
                "local mesh": lambda: run_threads(blocks, split.y, settings),
            },
            options.repeats,
        )
    finally:
        processes.close()
    for name, values in times.items():
        bench.figure(f"{name}, seconds", median(values))
    pairs = zip(times["processes over TLS"], times["local mesh"], strict=True)
    ratio = median([processes / local for processes, local in pairs])
    bench.target("processes over TLS / local mesh", ratio, 1.6, at_most=True)
    bench.write(options.out)


if __name__ == "__main__":
    main()
