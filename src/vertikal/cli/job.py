"""``vertikal job``: submit jobs, look at them, decide about them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import msgspec

from vertikal.cli.party_option import ask_service, party_option
from vertikal.errors import JobFailed


@click.group()
def job() -> None:
    """Jobs of this party's service."""


@job.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name", help="Name of the model; that of the file by default.")
@party_option
def submit(file: Path, name: str | None, party: Path | None) -> None:
    """Submit the job in FILE to all its parties; this party approves it by submitting it."""
    from vertikal.node.config.job_file import Job

    content = msgspec.to_builtins(Job.read_unchecked(file))
    answer = ask_service(party, "submit", name=name or file.stem, job=content)
    click.echo(f"job {answer['number']} ({answer['name']}): {answer['state']}")


@job.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@party_option
def list_(as_json: bool, party: Path | None) -> None:
    """All jobs that this party knows."""
    answer = ask_service(party, "list")
    if as_json:
        click.echo(msgspec.json.encode(answer))
        return
    for one in answer:
        click.echo(
            f"{one['number']:>4}  {one['name']:<20} from {one['from']:<12} {one['algorithm']:<8} "
            f"{one['state']}"
        )
    if not answer:
        click.echo("no jobs")


@job.command()
@click.argument("number", type=int)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@party_option
def show(number: int, as_json: bool, party: Path | None) -> None:
    """What job NUMBER computes, with which columns, who learns what, and what it costs."""
    answer = ask_service(party, "show", number=number)
    click.echo(msgspec.json.encode(answer) if as_json else answer["text"])


@job.command()
@click.argument("number", type=int)
@party_option
def approve(number: int, party: Path | None) -> None:
    """Approve exactly job NUMBER: sign its digest. Its run may then read this party's table."""
    _say(ask_service(party, "approve", number=number))


@job.command()
@click.argument("number", type=int)
@click.option("--reason", default="", help="Told to the other parties.")
@party_option
def reject(number: int, reason: str, party: Path | None) -> None:
    """Reject job NUMBER; it ends at all parties."""
    _say(ask_service(party, "reject", number=number, words=reason))


@job.command()
@click.argument("number", type=int)
@click.option("--reason", default="", help="Told to the other parties.")
@party_option
def cancel(number: int, reason: str, party: Path | None) -> None:
    """End job NUMBER at all parties, also while it runs."""
    _say(ask_service(party, "cancel", number=number, words=reason))


@job.command()
@click.argument("number", type=int)
@click.option("--timeout", type=float, default=86400.0, help="Seconds to watch at most.")
@party_option
def watch(number: int, timeout: float, party: Path | None) -> None:
    """Follow job NUMBER until it has ended; the exit code says how."""
    until = time.monotonic() + timeout
    last = ""
    while True:
        one = ask_service(party, "show", number=number)
        line = _line(one)
        if line != last:
            click.echo(line)
            last = line
        if one["done"]:
            return
        if not one["open"]:
            raise JobFailed(f"job {number} {one['state']}: {one['words'] or 'no reason given'}")
        if time.monotonic() > until:
            raise JobFailed(f"job {number} has not ended within {timeout:g} s: {one['state']}")
        time.sleep(0.3)


def _say(one: dict[str, Any]) -> None:
    click.echo(f"job {one['number']} ({one['name']}): {one['state']}")


def _line(one: dict[str, Any]) -> str:
    words = f"job {one['number']} ({one['name']}): {one['state']}"
    if one["rows_total"]:
        words += f" {one['rows_done']:,} / {one['rows_total']:,} rows"
    elif one["note"]:
        words += f" {one['note']}"
    return f"{words}, waits for {one['waits_for']}" if one["waits_for"] else words
