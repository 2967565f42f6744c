"""``vertikal federation check``: whether all parties of the federation fit together."""

from __future__ import annotations

from pathlib import Path

import click

from vertikal.cli.party_option import ask_service, party_option
from vertikal.errors import PartyUnfit


@click.group()
def federation() -> None:
    """The parties that this party works with."""


@federation.command()
@party_option
def check(party: Path | None) -> None:
    """For each party: whether name, key, address, version and clock fit."""
    peers = ask_service(party, "peers")
    for one in peers:
        click.echo(
            f"{one['name']:<16} {'ok' if not one['faults'] else 'does not fit':<13} "
            f"key {one['fingerprint'][7:23]}…  {one['address']:<22} "
            f"version {one['version'] or '?':<8} clock {one['clock']}"
        )
        for fault in one["faults"]:
            click.echo(f"    {fault}")
    bad = [one["name"] for one in peers if one["faults"]]
    if bad:
        raise PartyUnfit(f"{', '.join(bad)} cannot take part as things are")
