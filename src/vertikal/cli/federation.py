"""``vertikal federation``: whether all parties of the federation fit together."""

from __future__ import annotations

from pathlib import Path

import click

from vertikal.cli.output import json_option, print_json, print_table
from vertikal.cli.party_option import ask_service, party_option
from vertikal.errors import PartyUnfit


@click.group()
def federation() -> None:
    """Check the parties of the federation."""


@federation.command()
@json_option
@party_option
def check(as_json: bool, party: Path | None) -> None:
    """Check name, key, address, version and clock of each other party."""
    peers = ask_service(party, "peers")
    if as_json:
        print_json(peers)
    else:
        print_table(
            ("party", "state", "address", "version", "clock", "key"),
            [
                (
                    one["name"],
                    "does not fit" if one["faults"] else "ok",
                    one["address"],
                    one["version"] or "?",
                    one["clock"],
                    one["fingerprint"],
                )
                for one in peers
            ],
        )
        for one in peers:
            for fault in one["faults"]:
                click.echo(f"{one['name']}: {fault}")
    bad = [one["name"] for one in peers if one["faults"]]
    if bad:
        raise PartyUnfit(f"{', '.join(bad)} cannot take part as things are")
