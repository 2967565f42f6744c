"""``vertikal federation``: whether all parties of the federation fit together, and their keys."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from vertikal.cli.ordered_group import OrderedGroup
from vertikal.cli.output import json_option, print_json, print_table
from vertikal.cli.party_option import ask_service, party_file, party_option
from vertikal.errors import InputError, PartyUnfit


@click.group(cls=OrderedGroup)
def federation() -> None:
    """Check the parties of the federation and their keys."""


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


@federation.command()
@click.argument("name", required=False)
@click.option("--compared", is_flag=True, help="Remember that the owner of NAME reads the same.")
@json_option
@party_option
def verify(name: str | None, compared: bool, as_json: bool, party: Path | None) -> None:
    """Show the safety digits of this party and each other one, or of NAME alone.

    Call the other owner, by a number that you have from elsewhere, and read the digits to each
    other. If they are the same, nobody has put a key of his own into the federation file in either
    place. On a terminal you are then asked whether they were; --compared says so without asking. A
    new key of either party has to be compared anew.
    """
    from vertikal.files import private_folder
    from vertikal.node.config.federation_file import FederationFile
    from vertikal.node.config.party_file import PartyFile
    from vertikal.node.storage.audit_log import AuditLog
    from vertikal.node.storage.compared_keys import ComparedKeys
    from vertikal.secure.keys.safety_digits import safety_digits

    if compared and name is None:
        raise InputError("--compared needs the NAME of the party whose digits you compared")
    path = party_file(party)
    file = PartyFile.load(path)
    members = FederationFile.load(path.parent / file.federation)
    own = members.certificate(file.name)
    if name == file.name:
        raise InputError.of("NAME", "another party of the federation", name)
    others = [one for one in members.names if one != file.name] if name is None else [name]
    digits = {one: safety_digits(own, members.certificate(one)) for one in others}
    # The service need not run, nor have run: keys are best compared before it does.
    store = private_folder(path.parent / file.store)
    marks = ComparedKeys(store, file.name)
    if name is not None and not compared and not as_json and sys.stdin.isatty():
        click.echo(f"{name}  {digits[name]}")
        compared = click.confirm(f"Does the owner of {name} read the same digits?")
    if name is not None and compared:
        marks.mark(members, name)
        AuditLog(store / "audit.log", file.name).record(
            "keys compared",
            peer=name,
            mine=own.fingerprint,
            theirs=members.member(name).fingerprint,
        )
    dates = {one: marks.compared_on(members, one) for one in others}
    if as_json:
        print_json([{"name": one, "digits": digits[one], "compared": dates[one]} for one in others])
    else:
        print_table(
            ("party", "safety digits", "compared"),
            [(one, digits[one], _date(dates[one])) for one in others],
        )


def _date(when: float | None) -> str:
    return "no" if when is None else datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d")
