"""``vertikal job``: plan and submit jobs, look at them, decide about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from vertikal.cli.group import OrderedGroup
from vertikal.cli.terminal.output import json_option, print_json, print_table
from vertikal.cli.terminal.party_option import ask_service, party_option

_FILE = click.Path(path_type=Path, dir_okay=False)
_REASON = click.option("--reason", default="", help="A line that the other parties will read.")


@click.group(cls=OrderedGroup)
def job() -> None:
    """Plan, submit, decide about and follow jobs.

    JOB is the id that `vertikal job list` shows, such as credit-7f3a, or the beginning of the job's
    digest. Both are the same at all parties.
    """


@job.command()
@click.argument("file", type=_FILE)
@json_option
@party_option
def plan(file: Path, as_json: bool, party: Path | None) -> None:
    """Estimate rows, bytes, memory and minutes of the job in FILE.

    This runs a short probe with invented columns on this machine: alignment, training and
    evaluation. Only this party's own table is read; the others are only asked how fast they answer.
    """
    from vertikal.node.config.job_file import Job
    from vertikal.reporting.units import bytes_text, seconds_text

    answer = ask_service(party, "plan", job=msgspec.to_builtins(Job.load(file)))
    if as_json:
        print_json(answer)
        return
    click.echo(f"{answer['rows']:,} rows at most, those of this party's own table\n")
    print_table(
        ("party", "sends", "messages", "memory"),
        [
            (
                name,
                bytes_text(one["bytes_sent"]),
                one["frames"],
                bytes_text(one["memory"]),
            )
            for name, one in answer["parties"].items()
        ],
    )
    if answer["links"]:
        click.echo()
        print_table(
            ("link to", "there and back", "bandwidth"),
            [
                (
                    name,
                    f"{1000 * link['seconds']:.1f} ms",
                    f"{8 * link['bytes_a_second'] / 1e6:,.0f} Mb/s",
                )
                for name, link in answer["links"].items()
            ],
        )
    click.echo()
    print_table(
        ("stage", "on this machine"),
        [(name, seconds_text(spent)) for name, spent in answer["stages"].items()],
    )
    click.echo()
    print_table(
        ("bandwidth", "the job takes"),
        [(title, seconds_text(60 * minutes)) for title, minutes in answer["minutes"].items()],
    )


@job.command()
@click.argument("file", type=_FILE)
@click.option("--name", help="Name of the model; that of the file by default.")
@click.option(
    "--least-change",
    metavar="ROWS",
    type=click.IntRange(1),
    help="Do nothing if fewer rows of the own table changed since the last model of this name.",
)
@click.option("--watch", "watched", is_flag=True, help="Follow the job until it has ended.")
@json_option
@party_option
def submit(
    file: Path,
    name: str | None,
    least_change: int | None,
    watched: bool,
    as_json: bool,
    party: Path | None,
) -> None:
    """Submit the job in FILE to all its parties.

    By submitting it, this party approves it. With --watch the exit code is 1 if the job ends
    without a model. A job that was not needed (--least-change) is no error.
    """
    from vertikal.node.config.job_file import Job

    content = msgspec.to_builtins(Job.read_unchecked(file))
    name = file.stem if name is None else name
    one = ask_service(party, "submit", name=name, job=content, least_change=least_change)
    if "changed" in one:
        if as_json:
            print_json({"job": None, **one})
        else:
            click.echo(
                f"not submitted: {one['changed']} rows changed since the last model {name}, fewer "
                f"than {least_change}"
            )
        return
    if watched:
        from vertikal.client import Party

        if not as_json:
            _say(one, as_json=False)
        ended = Party(party).job(one["digest"]).wait(tell=None if as_json else click.echo)
        if as_json:
            print_json(ended.summary)
    else:
        _say(one, as_json)


@job.command("list")
@json_option
@party_option
def list_(as_json: bool, party: Path | None) -> None:
    """List all jobs that this party knows."""
    answer = ask_service(party, "list")
    if as_json:
        print_json(answer)
    elif answer:
        print_table(
            ("job", "from", "algorithm", "state"),
            [(one["job"], one["from"], one["algorithm"], _state(one)) for one in answer],
        )
    else:
        click.echo("no jobs")


@job.command()
@click.argument("job", metavar="JOB")
@json_option
@party_option
def show(job: str, as_json: bool, party: Path | None) -> None:
    """Show JOB in plain words.

    It says what the job computes, with which columns, who learns what, and what it costs.
    """
    answer = ask_service(party, "show", job=job)
    if as_json:
        print_json(answer)
    else:
        click.echo(answer["text"])


@job.command()
@click.argument("job", metavar="JOB")
@json_option
@party_option
def approve(job: str, as_json: bool, party: Path | None) -> None:
    """Approve exactly JOB: sign its digest.

    Its run may then read this party's table.
    """
    one = ask_service(party, "approve", job=job)
    if not as_json:
        click.echo(f"approved {one['name']} of {one['from']}, digest {one['digest']}")
    _say(one, as_json)


@job.command()
@click.argument("job", metavar="JOB")
@_REASON
@json_option
@party_option
def reject(job: str, reason: str, as_json: bool, party: Path | None) -> None:
    """Reject JOB; it ends at all parties."""
    _say(ask_service(party, "reject", job=job, words=reason), as_json)


@job.command()
@click.argument("job", metavar="JOB")
@click.option("--timeout", type=float, default=86400.0, help="Seconds to watch at most.")
@party_option
def watch(job: str, timeout: float, party: Path | None) -> None:
    """Follow JOB until it has ended.

    The exit code is 0 if the job is done, and 1 if it ended otherwise.
    """
    from vertikal.client import Party

    Party(party).job(job).wait(timeout, click.echo)


@job.command()
@click.argument("job", metavar="JOB")
@_REASON
@json_option
@party_option
def cancel(job: str, reason: str, as_json: bool, party: Path | None) -> None:
    """End JOB at all parties, also while it runs."""
    _say(ask_service(party, "cancel", job=job, words=reason), as_json)


def _state(one: dict[str, Any]) -> str:
    """Write the state of a job, with the reason if it has ended without a model."""
    why = "" if one["open"] or one["done"] else one["words"]
    return f"{one['state']}: {why}" if why else str(one["state"])


def _say(one: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(one)
    else:
        click.echo(f"job {one['job']}: {one['state']}")
