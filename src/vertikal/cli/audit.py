"""``vertikal audit``: a party's log of what it did and refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from vertikal.cli.group import OrderedGroup
from vertikal.cli.output import json_option, print_table
from vertikal.cli.party_option import party_option, store_of

LOG = "audit.log"


@click.group(cls=OrderedGroup)
def audit() -> None:
    """Read and verify this party's audit log.

    It has every job, decision, run, kind of message and refusal of this party.
    """


@audit.command()
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N lines.")
@json_option
@party_option
def show(last: int | None, as_json: bool, party: Path | None) -> None:
    """Show the lines of the log; with --json as they are stored."""
    import msgspec

    from vertikal.node.storage.audit_log import read

    lines = list(read(store_of(party) / LOG))
    if last:
        lines = lines[-last:]
    if as_json:
        for line in lines:
            click.echo(msgspec.json.encode(line))
        return
    print_table(
        ("line", "time", "event", "facts"),
        [(line.number, line.time[:19], line.event, _facts(line.facts)) for line in lines],
    )


@audit.command()
@click.option("--head", help="NUMBER:DIGEST that `vertikal audit head` printed on an earlier day.")
@party_option
def verify(head: str | None, party: Path | None) -> None:
    """Check that no line was altered, moved or taken out."""
    from vertikal.node.storage.audit_log import Head, verify

    anchor = Head.parse(head) if head else None
    found = verify(store_of(party) / LOG, anchor)
    click.echo(f"{found.number} lines, each bound to the one before it")
    if anchor:
        click.echo(f"line {anchor.number} has the digest of --head: nothing before it has changed")
    else:
        click.echo(
            "lines cut from the end, or a log written anew, show only against a head that "
            "somebody else keeps: --head"
        )
    click.echo(f"head {found}")


@audit.command()
@party_option
def head(party: Path | None) -> None:
    """Print number and digest of the last line, for others to keep."""
    from vertikal.node.storage.audit_log import verify

    click.echo(str(verify(store_of(party) / LOG)))


def _facts(facts: Mapping[str, object]) -> str:
    return "  ".join(f"{name}={_text(value)}" for name, value in facts.items() if value != "")


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{name}:{number}" for name, number in value.items())
    return str(value)
