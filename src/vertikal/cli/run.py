"""``vertikal run``: train a job with all its parties on this machine, or with one of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vertikal.cli.terminal.loading import loading
from vertikal.cli.terminal.passphrase import passphrase
from vertikal.errors import InputError
from vertikal.version import __version__

if TYPE_CHECKING:
    from vertikal.mesh.network import NetworkMesh
    from vertikal.node.config.job_file import Job
    from vertikal.node.runs.progress import Progress

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_RANKS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""Variables that mpiexec leaves in the environment of its ranks."""


@click.command()
@click.argument("path", metavar="JOB", type=_FILE)
@click.option(
    "--mesh",
    type=click.Choice(["network", "mpi", "local"]),
    help="Processes over mutual TLS (default), MPI ranks (default under mpiexec), or threads.",
)
@click.option(
    "--out", type=_FOLDER, help="Folder for a model store of each party, and for the predictions."
)
@click.option("--as", "only", metavar="NAME", help="Run one party only; the others run elsewhere.")
@click.option("--federation", type=_FILE, help="With --as: the file that all parties share.")
@click.option("--key", type=_FILE, help="With --as: the party's private key.")
@click.option("--certificate", type=_FILE, help="With --as: the party's certificate.")
@click.option("--reports", is_flag=True, hidden=True, help="Write reports instead of a table.")
def run(
    path: Path,
    mesh: str | None,
    out: Path | None,
    only: str | None,
    federation: Path | None,
    key: Path | None,
    certificate: Path | None,
    reports: bool,
) -> None:
    """Train the job in the file JOB.

    All its parties run on this machine; with --as only one of them does.
    """
    identity = {"--federation": federation, "--key": key, "--certificate": certificate}
    if only is not None:
        _run_one(path, mesh, out, only, identity)
        return
    if any(identity.values()):
        raise click.UsageError(f"{', '.join(identity)} need --as")
    with loading():
        from vertikal.node.config.job_file import Job
        from vertikal.node.runs import launch
        from vertikal.node.runs.live_table import LiveTable

    ranked = any(name in os.environ for name in _RANKS)
    job = Job.load(path)
    mesh = mesh or ("mpi" if ranked else "network")
    if mesh == "mpi" and ranked:
        _run_rank(path, job, out, reports)
        return
    # Nothing is started before every table is good.
    launch.check_tables(path, job)
    start = {
        "local": launch.run_threads,
        "network": launch.run_processes,
        "mpi": launch.run_ranks,
    }[mesh]
    with LiveTable(job.names) as live:
        vanished = start(path, job, out, live.tell)
    for result in live.results():
        click.echo(result)
    for name in vanished:
        click.echo(f"{name} vanished; the model has none of its coefficients", err=True)


def _run_one(
    path: Path, mesh: str | None, out: Path | None, name: str, identity: dict[str, Path | None]
) -> None:
    """Run one party here over the network; the others are wherever they are."""
    federation, key, certificate = identity.values()
    if not (federation and key and certificate) or mesh not in (None, "network"):
        raise click.UsageError(f"--as needs {', '.join(identity)}, and the network mesh")
    with loading():
        from vertikal.node.config.job_file import Job
        from vertikal.node.runs.launch import run_one
        from vertikal.node.runs.live_table import LiveTable

    job = Job.load(path)
    if name not in job.names:
        raise InputError.of("--as", f"one of {list(job.names)}", name)
    with LiveTable((name,)) as live:
        own = network_mesh(job, name, federation, key, certificate)
        run_one(path, job, own, out, live.tell)
    for result in live.results():
        click.echo(result)


def _run_rank(path: Path, job: Job, out: Path | None, reports: bool) -> None:
    """Run the party of this process, which is one rank of several."""
    from vertikal.mesh.mpi import MpiMesh, MpiWorld
    from vertikal.node.runs.launch import run_one

    mesh = MpiMesh(job.names, MpiWorld(), job=job.digest, version=__version__, deadline=job.timeout)
    try:
        run_one(path, job, mesh, out, _print if reports else quiet)
    except BaseException as error:
        click.echo(f"error: {' '.join(str(error).split()) or 'interrupted'}", err=True)
        # Without this MPI would wait for this rank at the end, and for the others here.
        sys.stderr.flush()
        os._exit(1)


@click.command(hidden=True)
@click.argument("path", metavar="JOB", type=_FILE)
@click.argument("name")
@click.option("--federation", type=_FILE, required=True)
@click.option("--key", type=_FILE, required=True)
@click.option("--certificate", type=_FILE, required=True)
@click.option("--out", type=_FOLDER)
def run_party(
    path: Path, name: str, federation: Path, key: Path, certificate: Path, out: Path | None
) -> None:
    """Run one party of a job, as `vertikal run` starts it."""
    from vertikal.node.config.federation_file import FederationFile
    from vertikal.node.config.job_file import Job
    from vertikal.node.runs.launch import run_one
    from vertikal.node.runs.progress import Progress
    from vertikal.node.runs.subprocesses import end_with_parent, told_port

    job = Job.load(path)
    addresses = FederationFile.load(federation).addresses()
    for other, address in addresses.items():
        if other != name and address is not None and address.endswith(":0"):
            port = told_port(name, other, job.timeout)
            addresses[other] = f"{address.removesuffix(':0')}:{port}"
    end_with_parent()
    mesh = network_mesh(job, name, federation, key, certificate, addresses)
    if mesh.port is not None:
        _print(Progress(name, port=mesh.port))
    run_one(path, job, mesh, out, _print)


def network_mesh(
    job: Job,
    name: str,
    federation: Path,
    key: Path,
    certificate: Path,
    addresses: dict[str, str | None] | None = None,
) -> NetworkMesh:
    """Open the network mesh of one party; ``addresses`` replace those of the federation file."""
    from vertikal.mesh.network import NetworkMesh
    from vertikal.node.config.federation_file import FederationFile
    from vertikal.secure.keys.identity import Identity

    members = FederationFile.load(federation)
    identity = Identity.load(key, certificate, passphrase(key))
    if identity.name != name:
        raise InputError.of("--certificate", f"that of {name!r}", identity.name)
    if members.names != job.names:
        raise InputError.of(
            "job", f"of the parties in the federation file {members.names}", job.names
        )
    return NetworkMesh(
        name,
        members.addresses() if addresses is None else addresses,
        members.credentials(identity),
        job=job.digest,
        version=__version__,
        deadline=job.timeout,
        bind=members.member(name).bind,
    )


def _print(progress: Progress) -> None:
    # One write per line, so that the lines of several ranks stay whole.
    sys.stdout.write(msgspec.json.encode(progress).decode() + "\n")
    sys.stdout.flush()


def quiet(progress: Progress) -> None:
    """Tell nobody."""
