"""All parties of a job on this machine: as processes over the network mesh, as MPI ranks, or as
threads. For experiments; between organisations each party starts its own process.

The processes get fresh keys and certificates for this run, listen on loopback only, and speak
mutual TLS as they would elsewhere.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.errors import InputError
from vertikal.mesh import local_meshes
from vertikal.mesh.party_threads import run_in_threads
from vertikal.node.config.federation_file import entry_of
from vertikal.node.config.job_file import Job
from vertikal.node.runs.subprocesses import Tell, supervise
from vertikal.node.runs.work import work
from vertikal.secure.keys.identity import Identity

COMMAND = (sys.executable, "-m", "vertikal")
AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
"""What Open MPI wants to see in the environment of root."""
ANY_PORT = "127.0.0.1:0"
"""Where the first party listens: it says which port it got, and the others are told."""


def run_threads(job: Job, folder: Path, out: Path | None, tell: Tell) -> None:
    """All parties as threads of this process, on the local mesh."""
    run_in_threads(
        local_meshes(job.names, job.timeout), lambda mesh: work(job, folder, mesh, out, tell)
    )


def run_processes(path: Path, job: Job, out: Path | None, tell: Tell) -> tuple[str, ...]:
    """All parties as processes over the network mesh, mutually authenticated.

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
        algorithm = algorithm_named(job.algorithm)
        spared = algorithm.can_spare_label_parties(job.algorithm_settings())
        return supervise(commands, tell, job.label_parties if spared else ())


def run_ranks(path: Path, job: Job, out: Path | None, tell: Tell) -> None:
    """All parties as MPI ranks, under an mpiexec started here."""
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
    supervise({"mpiexec": command}, tell)
