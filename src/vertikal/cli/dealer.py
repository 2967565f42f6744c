"""``vertikal dealer``: a participant without data, who makes the correlations of hidden phases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vertikal.errors import InputError
from vertikal.reporting.units import bytes_text

if TYPE_CHECKING:
    from vertikal.node.config.job_file import Job

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def dealer() -> None:
    """Take part as the dealer of hidden phases, without data."""


@dealer.command()
@click.argument("path", metavar="JOB", type=_FILE)
@click.option("--out", type=_FILE, required=True, help="The file; it serves one run.")
def prepare(path: Path, out: Path) -> None:
    """Make the correlation for one run of the job in JOB, ahead."""
    from vertikal.algorithms.catalogue import algorithm_named
    from vertikal.node.config.job_file import Job
    from vertikal.node.storage.prepared_correlation import write_correlation

    job = Job.load(path)
    name = job.dealer
    if name is None:
        raise InputError.of(
            "JOB", "a job with a dealer (disclosure 'values' or 'sealed')", "one without"
        )
    if job.parties[name].table is not None:
        raise InputError(
            f"the dealer {name!r} of this job has a table, so its part cannot be prepared; name a "
            "dealer with 'rows' and no table"
        )
    algorithm = algorithm_named(job.algorithm)
    size = write_correlation(out, algorithm, job.algorithm_settings(), _rows_of(job, name))
    click.echo(f"correlation  {out.name} ({bytes_text(size)}; keep it secret, it serves one run)")


@dealer.command()
@click.argument("path", metavar="JOB", type=_FILE)
@click.argument("name")
@click.option("--federation", type=_FILE, required=True, help="The federation file.")
@click.option("--key", type=_FILE, required=True, help="NAME.key, as keygen wrote it.")
@click.option("--certificate", type=_FILE, required=True, help="NAME.crt, as keygen wrote it.")
@click.option("--correlation", type=_FILE, help="File of `dealer prepare`; made now if left out.")
def join(
    path: Path,
    name: str,
    federation: Path,
    key: Path,
    certificate: Path,
    correlation: Path | None,
) -> None:
    """Join the federation as NAME, the dealer of the job in JOB."""
    from vertikal.cli.run import network_mesh, quiet
    from vertikal.node.config.job_file import Job
    from vertikal.node.runs.launch import run_one
    from vertikal.node.storage.prepared_correlation import claim_correlation

    job = Job.load(path)
    if job.dealer != name:
        raise InputError.of("NAME", "the dealer of this job", name)
    prepared = None
    if correlation is not None:
        if job.parties[name].table is not None:
            raise InputError.of("--correlation", "left out by a dealer with a table", name)
        prepared = claim_correlation(correlation, job.algorithm_settings(), _rows_of(job, name))
    mesh = network_mesh(job, name, federation, key, certificate)
    run_one(path, job, mesh, None, quiet, prepared)
    click.echo(f"done: dealt for {job.label_parties[0]}")


def _rows_of(job: Job, name: str) -> int:
    """The number of rows that the others have, as the job says it."""
    rows = job.parties[name].rows
    if job.evaluation is not None:
        raise InputError.of(
            "evaluation",
            "left out where a dealer prepares ahead: training has fewer rows, and not yet known "
            "ones",
            job.evaluation.way,
        )
    if rows is None:
        raise InputError.of(f"rows of {name}", "given: how many the others have", None)
    return rows
