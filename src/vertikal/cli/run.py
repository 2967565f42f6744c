"""``vertikal run``: all parties of a job on this machine, with one live table."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.live import Live
from rich.table import Table

from vertikal.errors import InputError
from vertikal.node.job import Job
from vertikal.node.progress import Report
from vertikal.reporting import bytes_text, seconds_text
from vertikal.version import __version__

if TYPE_CHECKING:
    from vertikal.mesh.network import NetworkMesh

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_RANKS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""What mpiexec leaves in the environment of its ranks."""


@click.command()
@click.argument("job", type=_FILE)
@click.option(
    "--mesh",
    type=click.Choice(["network", "mpi", "local"]),
    help="Processes over mutual TLS (default), MPI ranks (default under mpiexec), or threads.",
)
@click.option("--out", type=_FOLDER, help="Folder for the shards, one file per party.")
@click.option("--reports", is_flag=True, hidden=True, help="Write reports instead of a table.")
def run(job: Path, mesh: str | None, out: Path | None, reports: bool) -> None:
    """Train the job in the file JOB with all its parties on this machine."""
    from vertikal.node import launch

    ranked = any(name in os.environ for name in _RANKS)
    content = Job.load(job)
    mesh = mesh or ("mpi" if ranked else "network")
    if mesh == "mpi" and ranked:
        _run_rank(job, content, out, reports)
        return
    for name in content.names:
        content.read(name, job.parent)  # nothing is started before every table is good
    with LiveTable(content.names) as table:
        if mesh == "local":
            launch.run_threads(content, job.parent, out, table.tell)
        elif mesh == "network":
            launch.run_processes(job, content, out, table.tell)
        else:
            launch.run_ranks(job, content, out, table.tell)


def _run_rank(path: Path, job: Job, out: Path | None, reports: bool) -> None:
    """This process is one rank of several."""
    from vertikal.mesh.mpi import MpiMesh, MpiWorld
    from vertikal.node.work import work

    mesh = MpiMesh(job.names, MpiWorld(), job=job.digest, version=__version__, deadline=job.timeout)
    try:
        work(job, path.parent, mesh, out, _print if reports else quiet)
    except BaseException as error:
        click.echo(f"error: {' '.join(str(error).split()) or 'interrupted'}", err=True)
        # Without this MPI would wait for this rank at the end, and for the others here.
        sys.stderr.flush()
        os._exit(1)


@click.command(hidden=True)
@click.argument("job", type=_FILE)
@click.argument("name")
@click.option("--federation", type=_FILE, required=True)
@click.option("--key", type=_FILE, required=True)
@click.option("--certificate", type=_FILE, required=True)
@click.option("--out", type=_FOLDER)
def run_party(
    job: Path, name: str, federation: Path, key: Path, certificate: Path, out: Path | None
) -> None:
    """One party of a job, as `vertikal run` starts it."""
    from vertikal.node.launch import end_with_parent
    from vertikal.node.work import work

    end_with_parent()
    content = Job.load(job)
    mesh = connected(content, name, federation, key, certificate)
    work(content, job.parent, mesh, out, _print)


def connected(
    content: Job, name: str, federation: Path, key: Path, certificate: Path
) -> NetworkMesh:
    """The network mesh of one party of a job."""
    from vertikal.mesh.network import NetworkMesh
    from vertikal.node.federation import FederationFile
    from vertikal.secure.identity import Identity

    members = FederationFile.load(federation)
    identity = Identity.load(key, certificate)
    if identity.name != name:
        raise InputError.of("--certificate", f"that of {name!r}", identity.name)
    if members.names != content.names:
        raise InputError.of(
            "job", f"of the parties in the federation file {members.names}", content.names
        )
    return NetworkMesh(
        name,
        members.addresses(),
        members.credentials(identity),
        job=content.digest,
        version=__version__,
        deadline=content.timeout,
        bind=members.member(name).bind,
    )


def _print(report: Report) -> None:
    # One write per line, so that the lines of several ranks stay whole.
    sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    sys.stdout.flush()


def quiet(report: Report) -> None:
    """Tell nobody."""


class LiveTable:
    """One line per party, drawn on standard error while the parties work."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._reports = {name: Report(name) for name in names}
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._live = Live(
            get_renderable=self.table,
            console=Console(stderr=True, highlight=False),
            refresh_per_second=4,
        )

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def tell(self, report: Report) -> None:
        with self._lock:
            if report.party in self._reports:
                self._reports[report.party] = report

    def table(self) -> Table:
        """The table as it stands."""
        table = Table(title=f"{seconds_text(time.monotonic() - self._began)}", title_justify="left")
        for column in ("party", "stage", "rows", "in", "out", "waits for", "left"):
            right = column in ("rows", "in", "out", "left")
            table.add_column(column, justify="right" if right else "left")
        with self._lock:
            reports = list(self._reports.values())
        for report in reports:
            left = report.time_left()
            table.add_row(
                report.party,
                (report.ended[:60] or report.stage),
                f"{report.done:,} / {report.total:,}" if report.total else report.note[:24],
                bytes_text(report.bytes_in),
                bytes_text(report.bytes_out),
                report.waits_for[:48],
                "" if left is None else seconds_text(left),
            )
        return table
