"""``vertikal plan``: what a job will take, before anything runs."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from vertikal.cli.party_option import ask_service, party_option
from vertikal.reporting import bytes_text, seconds_text


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@party_option
def plan(file: Path, as_json: bool, party: Path | None) -> None:
    """Rows, bytes, memory and minutes of the job in FILE, by party and by bandwidth.

    A short probe with invented columns on this machine. Only this party's own table is read, to
    count its rows; the others are only asked how fast they answer.
    """
    from vertikal.node.config.job_file import Job

    answer = ask_service(party, "plan", job=msgspec.to_builtins(Job.load(file)))
    if as_json:
        click.echo(msgspec.json.encode(answer))
        return
    click.echo(f"{answer['rows']:,} rows at most, those of this party's own table")
    for name, one in answer["parties"].items():
        click.echo(
            f"  {name:<14} {seconds_text(one['work']):>8} of work   "
            f"sends {bytes_text(one['bytes_sent']):>9} in {one['frames']:,} messages   "
            f"holds {bytes_text(one['memory']):>9}"
        )
    for name, link in answer["links"].items():
        click.echo(
            f"  link to {name}: {1000 * link['seconds']:.1f} ms there and back, "
            f"{8 * link['bytes_a_second'] / 1e6:,.0f} Mb/s"
        )
    for title, minutes in answer["minutes"].items():
        click.echo(f"  {title:<12} {seconds_text(60 * minutes)}")
