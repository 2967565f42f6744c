"""Start all parties of a job on this machine: as processes over the network mesh, as MPI ranks, or
as threads. For experiments; between organisations each party starts its own process.

The processes get fresh keys and certificates for this run, listen on loopback only, and speak
mutual TLS as they would elsewhere.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.errors import InputError
from vertikal.mesh import local_meshes
from vertikal.mesh.interface import Mesh
from vertikal.mesh.party_threads import run_in_threads
from vertikal.node.config.federation_file import entry_of
from vertikal.node.config.job_file import Job
from vertikal.node.runs.party_run import PartyRun, prepare, run_party
from vertikal.node.runs.progress import ProgressReporter, Tell
from vertikal.node.runs.subprocesses import supervise
from vertikal.node.runs.workplaces import FolderWorkplace
from vertikal.node.storage.prepared_correlation import CorrelationFile
from vertikal.secure.keys.identity import Identity

COMMAND = (sys.executable, "-m", "vertikal")
AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
"""Variables without which Open MPI refuses to run as root."""
ANY_PORT = "127.0.0.1:0"
"""Address at which the first party listens; it says which port it got, and the others are told."""


def check_tables(path: Path, job: Job) -> None:
    """Read the tables of all parties; InputError names the first that cannot be used."""
    for name in job.names:
        prepare(FolderWorkplace(name, job, path))


def run_one(
    path: Path,
    job: Job,
    mesh: Mesh,
    out: Path | None,
    tell: Tell,
    prepared: CorrelationFile | None = None,
) -> Any:
    """Run the party whose mesh this is, on its table beside the job file; returns its shard.

    ``prepared`` is what a dealer without columns has computed ahead.
    """
    place = FolderWorkplace(mesh.me, job, path, out)
    return run_party(PartyRun(place, mesh, ProgressReporter(mesh, tell), prepared))


def run_threads(path: Path, job: Job, out: Path | None, tell: Tell) -> tuple[str, ...]:
    """Run all parties as threads of this process, on the local mesh.

    Returns those without which the others finished, where the job allows that.
    """
    meshes = local_meshes(job.names, job.timeout)
    ended = run_in_threads(
        meshes, lambda mesh: run_one(path, job, mesh, out, tell), _dispensable(job)
    )
    return tuple(ended.errors)


def run_processes(path: Path, job: Job, out: Path | None, tell: Tell) -> tuple[str, ...]:
    """Run all parties as processes over the network mesh, mutually authenticated.

    Returns those without which the others finished, where the job allows that.
    """
    with TemporaryDirectory(prefix="vertikal-run-") as folder:
        keys = Path(folder)
        entries = []
        for place, name in enumerate(job.names):
            identity = Identity.create(name, days=1)
            identity.save(keys / f"{place}.key", keys / f"{place}.crt")
            entries.append(entry_of(identity, None if place else ANY_PORT))
        (keys / "federation.toml").write_text("\n".join(entries), encoding="utf-8")
        commands = {
            name: [
                *(*COMMAND, "run-party", "--federation", str(keys / "federation.toml")),
                *("--key", str(keys / f"{place}.key")),
                *("--certificate", str(keys / f"{place}.crt")),
                *(("--out", str(out)) if out else ()),
                *("--", str(path), name),
            ]
            for place, name in enumerate(job.names)
        }
        return supervise(commands, tell, _dispensable(job))


def run_ranks(path: Path, job: Job, out: Path | None, tell: Tell) -> tuple[str, ...]:
    """Run all parties as MPI ranks, under an mpiexec started here."""
    command = [
        *(str(Path(sys.executable).with_name("mpiexec")), "-n", str(len(job.names))),
        *("--oversubscribe", "--mca", "mpi_yield_when_idle", "1"),
        *(*COMMAND, "run", str(path), "--mesh", "mpi", "--reports"),
        *(("--out", str(out)) if out else ()),
    ]
    if not Path(command[0]).exists():
        raise InputError(
            "--mesh mpi needs mpiexec next to this Python; install vertikal[mpi], or start "
            "`mpiexec -n ... vertikal run` yourself"
        )
    if os.geteuid() == 0 and not all(os.environ.get(name) == "1" for name in AS_ROOT):
        raise InputError(f"--mesh mpi as root needs {' and '.join(AS_ROOT)} set to 1")
    return supervise({"mpiexec": command}, tell)


def _dispensable(job: Job) -> tuple[str, ...]:
    """The parties of which all but one may vanish while the others finish."""
    algorithm = algorithm_named(job.algorithm)
    return job.label_parties if algorithm.can_spare_label_parties(job.algorithm_settings()) else ()
