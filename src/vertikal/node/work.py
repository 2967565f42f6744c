"""One party's work in a job, whatever mesh it has: read, train, write the shard, say good-bye."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from threadpoolctl import threadpool_limits

from vertikal.algorithms import fdskl
from vertikal.algorithms.shard import Shard
from vertikal.errors import VertikalError
from vertikal.mesh.interface import Mesh
from vertikal.mesh.packet_mesh import PacketMesh
from vertikal.node.job import Job
from vertikal.node.progress import Report, Reporter
from vertikal.node.shard_file import write_shard
from vertikal.node.stock import FileStock
from vertikal.party import Party, digest
from vertikal.version import __version__

Tell = Callable[[Report], None]
FAREWELL = 5.0
"""Seconds that a party which failed takes to tell the others why."""


def work(
    job: Job,
    folder: Path,
    mesh: Mesh,
    out: Path | None,
    tell: Tell,
    stock: FileStock | None = None,
) -> Shard:
    """Run the program at this party; on failure the others are told before the error is raised.

    ``stock`` is what a dealer without columns has prepared.
    """
    reporter = Reporter(mesh, tell)
    try:
        table, labels = job.read(mesh.me, folder)
        settings = job.fdskl()
        # One BLAS thread: the parties themselves are what runs in parallel on this machine.
        with threadpool_limits(1, "blas"):
            party = Party(
                mesh,
                table,
                label_parties=job.label_parties,
                labels=labels,
                secret=job.secret(mesh.me),
                job=job.digest,
                settings=digest(settings),
                version=__version__,
                masking=job.masking,
                shape=job.shape,
                observer=reporter,
                stock=stock,
            )
            shard = fdskl.train(party, settings)
        if out is not None:
            write_shard(shard, out / f"{mesh.me}.shard")
    except BaseException as error:
        words = _words(error)
        mesh.fail(words)
        if isinstance(mesh, PacketMesh):
            mesh.stop(FAREWELL)
        reporter.close(words)
        raise
    mesh.close()
    reporter.close("done")
    if isinstance(mesh, PacketMesh):
        mesh.stop()
    return shard


def _words(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    kind, words = type(error).__name__, " ".join(str(error).split())
    return words if isinstance(error, VertikalError) else f"{kind}: {words}"
