"""One party's work in a job, whatever mesh it has: read, train, predict, write, say good-bye.

Into the folder ``out`` go NAME.shard, which is the party's own secret, NAME.account.json (what left
the party, and where time went), and at the first label party predictions.csv, if the job asks for
predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.compute.threads import one_blas_thread
from vertikal.data.tables import Table
from vertikal.errors import VertikalError
from vertikal.mesh.interface import Mesh
from vertikal.mesh.packets.packet_mesh import PacketMesh
from vertikal.node.config.job_file import Job
from vertikal.node.models.shard_file import write_shard
from vertikal.node.peer_message import peer_message
from vertikal.node.runs.account import Account, write_account
from vertikal.node.runs.progress import Progress, ProgressReporter
from vertikal.node.storage.prepared_correlation import CorrelationFile
from vertikal.party.party import Labels, Party, digest
from vertikal.version import __version__

Tell = Callable[[Progress], None]
FAREWELL = 5.0
"""Seconds that a party which failed takes to tell the others why."""
PREDICTIONS = "predictions.csv"


@dataclass(frozen=True)
class _Bench:
    """What a party works with; ``stock`` is what a dealer without columns has prepared."""

    job: Job
    settings: Any
    mesh: Mesh
    reporter: ProgressReporter
    stock: CorrelationFile | None

    def party(
        self,
        table: Table,
        labels: Labels | None,
        run: str,
        save_shard: Callable[[Any], None] = lambda shard: None,
    ) -> Party:
        return Party(
            self.mesh,
            table,
            label_parties=self.job.label_parties,
            labels=labels,
            secret=self.job.secret(self.mesh.me),
            job=f"{self.job.digest}/{run}",
            settings_digest=digest(self.settings),
            version=__version__,
            masking=self.job.masking,
            shape=self.job.shape,
            observer=self.reporter,
            save_shard=save_shard,
            prepared=self.stock,
        )


def work(
    job: Job,
    folder: Path,
    mesh: Mesh,
    out: Path | None,
    tell: Tell,
    stock: CorrelationFile | None = None,
) -> Any:
    """Run the program at this party; on failure the others are told before the error is raised.

    Its words may show cells or columns: they are for this party alone, the others hear less.
    """
    reporter = ProgressReporter(mesh, tell)
    try:
        table, labels = job.read(mesh.me, folder)
        test = job.read_test(mesh.me, folder, table) if job.predicts else None
        if isinstance(mesh, PacketMesh):
            reporter.begin(mesh.me, "connect", None)
            mesh.connect()
        bench = _Bench(job, job.algorithm_settings(), mesh, reporter, stock)
        with one_blas_thread():
            shard = _train(bench, table, labels, out)
            if test is not None:
                _predict(bench, shard, test, out)
    except BaseException as error:
        words = _words(error)
        mesh.fail(peer_message(mesh.me, error))
        if isinstance(mesh, PacketMesh):
            mesh.stop(FAREWELL)
        reporter.close(words)
        raise
    mesh.close()
    reporter.close("done")
    if isinstance(mesh, PacketMesh):
        mesh.stop()
    return shard


def _train(bench: _Bench, table: Table, labels: Labels | None, out: Path | None) -> Any:
    algorithm = algorithm_named(bench.job.algorithm)

    def save_shard(shard: Any) -> None:
        if out is not None:
            write_shard(shard, out / f"{bench.mesh.me}.shard", algorithm)

    party = bench.party(table, labels, "train", save_shard)
    shard = algorithm.train(party, bench.settings)
    save_shard(shard)
    if out is not None:
        write_account(Account.of(party), out / f"{party.name}.account.json")
    return shard


def _predict(bench: _Bench, shard: Any, test: Table, out: Path | None) -> None:
    party = bench.party(test, None, "predict")
    values = algorithm_named(bench.job.algorithm).predict(party, shard)
    if values is not None and out is not None:
        np.savetxt(out / PREDICTIONS, values, "%.17g", ",", header="value", comments="")


def _words(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    kind, words = type(error).__name__, " ".join(str(error).split())
    return words if isinstance(error, VertikalError) else f"{kind}: {words}"
