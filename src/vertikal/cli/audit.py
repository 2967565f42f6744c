"""``vertikal audit``: a party's log of what it did and refused."""

from __future__ import annotations

from pathlib import Path

import click

from vertikal.cli.stores import store_option

LOG = "audit.log"


@click.group()
def audit() -> None:
    """The log of every job, approval, message class and refusal of this party."""


@audit.command()
@click.option("--last", type=click.IntRange(1), help="Only so many lines from the end.")
@click.option("--json", "as_json", is_flag=True, help="The lines as they are stored.")
@store_option
def log(last: int | None, as_json: bool, store: Path) -> None:
    """Read the log."""
    import msgspec

    from vertikal.node.storage.audit_log import read

    lines = list(read(store / LOG))
    for line in lines[-last:] if last else lines:
        if as_json:
            click.echo(msgspec.json.encode(line).decode())
            continue
        facts = "  ".join(f"{name}={_words(value)}" for name, value in line.facts.items())
        click.echo(f"{line.number:>6}  {line.time[:19]}  {line.event:<20} {facts}".rstrip())


@audit.command()
@click.option("--head", help="NUMBER:DIGEST that `vertikal audit head` printed on an earlier day.")
@store_option
def verify(head: str | None, store: Path) -> None:
    """Check that no line was altered, moved or taken out."""
    from vertikal.node.storage.audit_log import Head, verify

    anchor = Head.parse(head) if head else None
    found = verify(store / LOG, anchor)
    click.echo(f"{found.number} lines, each bound to the one before it")
    if anchor:
        click.echo(f"line {anchor.number} is the one of the given head: nothing before it changed")
    else:
        click.echo(
            "lines cut from the end, or a log written anew, show only against a head that "
            "somebody else keeps: --head"
        )
    click.echo(f"head {found}")


@audit.command()
@store_option
def head(store: Path) -> None:
    """The number and digest of the last line: give them to somebody else to keep."""
    from vertikal.node.storage.audit_log import verify

    click.echo(str(verify(store / LOG)))


def _words(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{name}:{number}" for name, number in value.items())
    return str(value)
