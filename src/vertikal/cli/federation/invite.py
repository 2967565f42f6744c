"""``vertikal invite`` and ``vertikal join``: form a federation with one-time codes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vertikal.cli.terminal.passphrase import passphrase
from vertikal.errors import InputError

_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder with the files that keygen made; the current one by default.",
)
_minutes = click.option(
    "--minutes",
    type=click.FloatRange(0.05, 1440),
    default=60.0,
    show_default=True,
    help="Minutes to wait for the others.",
)


@click.command()
@click.argument("name")
@click.argument("others", nargs=-1, required=True)
@click.option(
    "--at", "address", metavar="HOST:PORT", required=True, help="Address that the others dial."
)
@_folder
@_minutes
def invite(name: str, others: tuple[str, ...], address: str, folder: Path, minutes: float) -> None:
    """Invite OTHERS into a federation with NAME, by one-time codes.

    Give each party its code by another channel than the network. The command waits until all have
    joined; then federation.toml is written here and at each of them.
    """
    from vertikal.mesh.addresses import check_address
    from vertikal.node.config.invitation import (
        Invitation,
        check_federation,
        check_own_key,
        check_place,
        parse_entry,
        server_context,
        write_federation,
    )

    check_address(address, plaintext=False)
    if len({name, *others}) != len(others) + 1:
        raise InputError.of("OTHERS", "distinct names of other parties", list(others))
    entry = parse_entry(_entry(folder, name), name)
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    # All that can fail here fails before somebody has a code.
    check_place(folder / "federation.toml")
    secret = passphrase(key)
    check_own_key(entry, key, certificate, secret)
    context = server_context(key, certificate, secret)
    try:
        invitation = Invitation(entry, others, address, context)
    except OSError as error:
        raise InputError(f"--at: cannot listen at {address}: {error.strerror}") from None
    for other, code in invitation.codes.items():
        click.echo(f"{other}: {code}")
    click.echo("each of them runs `vertikal join` and enters its code there")
    text = invitation.wait(60 * minutes, lambda joined: click.echo(f"{joined} has joined"))
    check_federation(text)
    write_federation(folder / "federation.toml", text)
    click.echo(f"federation of {', '.join((name, *others))} written to federation.toml")


@click.command("join")
@click.argument("code", required=False, metavar="")
@_folder
@_minutes
def join_(code: str | None, folder: Path, minutes: float) -> None:
    """Join a federation with the code that the inviting party gave.

    The code is asked for, or read from standard input. Whoever has it can join in this party's
    place, so it is no argument: those stand in the list of processes and in the shell's history.
    """
    from vertikal.node.config.federation_file import check_party_name
    from vertikal.node.config.invitation import (
        InvitationCode,
        check_federation,
        check_own_key,
        check_place,
        join,
        parse_entry,
        write_federation,
    )

    if code is not None:
        raise InputError(
            "the code must not be an argument, which other users of this machine can read; run "
            "`vertikal join` and enter it, and ask for a new one if others can log in here"
        )
    parsed = InvitationCode.parse(_ask_for_code())
    # All that can fail here fails before the code is used.
    name = parsed.name
    check_party_name(name, "the party of the code")
    if not (folder / f"{name}.toml").exists():
        raise InputError(
            f"the code is for {name}, and {name}.toml is not there; enter the code of this party, "
            f"or let `vertikal keygen {name}` make it"
        )
    entry = _entry(folder, name)
    member = parse_entry(entry, name)
    check_place(folder / "federation.toml")
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    check_own_key(member, key, certificate, passphrase(key))
    text = join(parsed, entry, 60 * minutes, click.echo)
    write_federation(folder / "federation.toml", text)
    names = check_federation(text).names
    click.echo(f"federation of {', '.join(names)} written to federation.toml")


def _ask_for_code() -> str:
    return str(click.prompt("code")) if sys.stdin.isatty() else sys.stdin.readline()


def _entry(folder: Path, name: str) -> str:
    from vertikal.node.config.federation_file import check_party_name

    check_party_name(name, "NAME")
    path = folder / f"{name}.toml"
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise InputError(f"{path.name} is not there; `vertikal keygen {name}` makes it") from None
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is no entry that `vertikal keygen {name}` made") from None
