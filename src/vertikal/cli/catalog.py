"""``vertikal catalog``: what other parties offer to this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vertikal.cli.terminal.output import json_option, print_json, print_table
from vertikal.cli.terminal.party_option import ask_service, party_option
from vertikal.errors import PartyUnfit


@click.command()
@click.argument("names", nargs=-1)
@click.option("--mine", is_flag=True, help="What each of NAMES, or of all others, reads of mine.")
@json_option
@party_option
def catalog(names: tuple[str, ...], mine: bool, as_json: bool, party: Path | None) -> None:
    """Show what others, or NAMES, offer to this party.

    Tables and columns, their types, the number of rows to a power of ten, and the policy in words:
    as far as each owner allows it to this party (catalog in its policy). The service asks over its
    links, and waits five seconds. The exit code is 1 if somebody could not be asked.
    """
    found = ask_service(party, "catalog", names=list(names), mine=mine)
    if as_json:
        print_json(found)
    else:
        _print(found)
    silent = [one["party"] for one in found if one["fault"]]
    if silent:
        raise PartyUnfit(f"nothing is known of {', '.join(silent)}")


def _print(found: list[dict[str, Any]]) -> None:
    rows = [
        (one["party"], table["name"], table["rows"] or "?", *column[:2], column[2] or "?")
        for one in found
        for table in one["tables"]
        for column in table["columns"]
    ]
    if rows:
        print_table(("party", "table", "rows", "column", "use", "type"), rows)
    for one in found:
        for table in one["tables"]:
            if table["left_out"]:
                click.echo(f"{one['party']}: {table['left_out']:,} more columns of {table['name']}")
    for one in found:
        if one["fault"]:
            click.echo(f"{one['party']}: {one['fault']}")
        elif one["level"] == "none":
            click.echo(f"{one['party']}: tells nothing (who and catalog in its policy)")
        elif not one["tables"]:
            click.echo(f"{one['party']}: offers no table; it can be a dealer without data")
        for words in one["policy"]:
            click.echo(f"{one['party']}: {words}")
