"""``vertikal federation``: whether all parties of the federation fit together, and their keys."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from vertikal.cli.group import OrderedGroup
from vertikal.cli.terminal.output import json_option, print_json, print_table
from vertikal.cli.terminal.party_option import ask_service, party_file, party_option
from vertikal.errors import InputError, PartyUnfit
from vertikal.node.printable import printable


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
    """Show the safety digits to compare with the others, or with NAME.

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


@federation.command()
@json_option
@party_option
def changes(as_json: bool, party: Path | None) -> None:
    """List the changes of keys and members, in force or proposed."""
    answer = ask_service(party, "changes")
    if as_json:
        print_json(answer)
    else:
        _show(answer)


@federation.command()
@click.option(
    "--days",
    type=click.IntRange(30, 3650),
    default=825,
    show_default=True,
    help="Days until the new certificate ends.",
)
@click.option(
    "--anyway", is_flag=True, help="Go on although some party is not connected and cannot hear it."
)
@party_option
def rotate(days: int, anyway: bool, party: Path | None) -> None:
    """Give this party a new key, which its old key signs.

    The services of the others take it up at once, and so does this party's: nothing is restarted,
    and runs under way go on. The old key is deleted. Then compare keys anew (`vertikal federation
    verify`).
    """
    fingerprint = ask_service(party, "rotate", days=days, anyway=anyway)
    click.echo(f"new key  {fingerprint}")


@federation.command()
@click.argument("names", nargs=-1, required=True)
@party_option
def remove(names: tuple[str, ...], party: Path | None) -> None:
    """Propose that the parties NAMES leave the federation.

    It holds as soon as every party that remains has signed it by `vertikal federation accept`; this
    party signs by proposing. Then links of NAMES are closed and refused, and their jobs stop.
    """
    _show(ask_service(party, "remove", names=list(names)))


@federation.command()
@click.argument("digest")
@party_option
def accept(digest: str, party: Path | None) -> None:
    """Sign the proposed change whose digest begins with DIGEST."""
    _show(ask_service(party, "accept", digest=digest))


@federation.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@party_option
def update(file: Path, party: Path | None) -> None:
    """Take in the signed changes in FILE, a federation file.

    For changes that could not come by themselves: while a party was not connected, another one got
    a new key, and now the two refuse each other.
    """
    _show(ask_service(party, "update", file=str(file.resolve())))


def _show(answer: dict[str, Any]) -> None:
    members = ", ".join(answer["members"])
    click.echo(f"federation of {members}; serial {answer['serial']}")
    for one in answer["changes"]:
        click.echo(printable(f"{one['digest'][:12]}  {one['state']}: {one['words']}"))


def _date(when: float | None) -> str:
    return "no" if when is None else datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d")
