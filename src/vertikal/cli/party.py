"""``vertikal party``: the service of one party."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType

import click

from vertikal.cli.backup import backup, restore
from vertikal.cli.group import OrderedGroup
from vertikal.cli.terminal.output import json_option, print_json, print_table
from vertikal.cli.terminal.party_option import party_argument, party_file
from vertikal.cli.terminal.passphrase import passphrase
from vertikal.errors import InputError, PartyUnfit


@click.group(cls=OrderedGroup)
def party() -> None:
    """Check what a party offers, run its service, and back it up."""


@party.command()
@party_argument
@json_option
def check(file: Path | None, as_json: bool) -> None:
    """Check the party in FILE: its files, and the tables that it offers.

    It reads every table as a job would: is it there, with its columns, distinct ids, and cells that
    can be used? Nothing is sent. The exit code is 1 if something has to be put right.
    """
    from vertikal.node.approval.table_check import check_tables
    from vertikal.node.config.federation_file import FederationFile
    from vertikal.node.config.party_file import PartyFile
    from vertikal.secure.keys.identity import Identity

    path = party_file(file)
    content = PartyFile.load(path)
    federation = FederationFile.load(path.parent / content.federation)
    key, certificate = path.parent / content.key, path.parent / content.certificate
    identity = Identity.load(key, certificate, own_passphrase(path))
    if identity.name != content.name:
        raise InputError.of("party file: certificate", f"that of {content.name!r}", identity.name)
    federation.credentials(identity)
    found = check_tables(content, path.parent)
    if as_json:
        print_json(found)
    elif found:
        print_table(
            ("table", "rows", "state"),
            [(one.table, one.rows, "cannot be used" if one.problems else "ok") for one in found],
        )
        for one in found:
            for line in (*one.problems, *one.remarks):
                click.echo(f"{one.table}: {line}")
    else:
        click.echo("no tables: this party can only be a dealer without data")
    bad = [one.table for one in found if one.problems]
    if bad:
        raise InputError(
            f"party file {path.name!r}: jobs cannot use {', '.join(bad)} as things are"
        )


@party.command()
@party_argument
@json_option
def show(file: Path | None, as_json: bool) -> None:
    """Show every setting of the party in FILE, with its line and meaning.

    A setting without a line has its default. Nothing but the file is read.
    """
    from vertikal.node.config.explained_settings import explain_settings

    found = explain_settings(party_file(file))
    if as_json:
        print_json(found)
        return
    print_table(
        ("line", "setting", "value", "meaning"),
        [
            (
                "" if one.line is None else str(one.line),
                f"{one.section}.{one.name}" if one.section else one.name,
                one.value,
                one.meaning,
            )
            for one in found
        ],
    )


@party.command()
@party_argument
def start(file: Path | None) -> None:
    """Run the service of the party in FILE, until it is stopped.

    Without FILE it is the party file that VERTIKAL_PARTY names, or the only one in this folder.
    Jobs, approvals and checkpoints are on disk: a service that is started again goes on where it
    was. Tables that jobs could not use are named; `vertikal party check` reads their cells too.
    """
    path = party_file(file)
    secret = own_passphrase(path)
    began = time.monotonic()
    from vertikal.node.config.party_file import PartyFile
    from vertikal.node.monitoring.service_log import ServiceLog
    from vertikal.node.runs.memory import share_one_arena
    from vertikal.node.service import Service

    share_one_arena()
    content = PartyFile.load(path)
    say = ServiceLog(content.name, path.parent, content.log).say
    stopped = threading.Event()

    def stop(_: int, __: FrameType | None) -> None:
        stopped.set()

    # A signal during the start ends it too.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    service = Service(path, say, secret)
    service.start()
    console = None
    if content.console is not None:
        from vertikal.console.child import ConsoleChild

        console = ConsoleChild(path.absolute(), say)
        console.start()
    say(f"{service.me} is ready, {time.monotonic() - began:.2f} s after its start")
    stopped.wait()
    say("stopping")
    if console is not None:
        console.stop()
    service.stop()
    # Whatever thread of a library still waits for a peer must not keep the process.
    os._exit(0)


@party.command()
@party_argument
@json_option
def health(file: Path | None, as_json: bool) -> None:
    """Tell whether the service of the party in FILE is well.

    The exit code is 0 while it beats and its store has room. Parties that are away are named, and
    are no fault of this one. Service managers and containers can ask this.
    """
    from vertikal.node.config.party_search import store_of
    from vertikal.node.control import ask

    told = ask(store_of(file), "health")
    if as_json:
        print_json(told)
    else:
        click.echo(f"{told['party']} is {told['status']}, vertikal {told['version']}")
        for name, state in told["peers"].items():
            click.echo(f"{name}: {state}")
    if told["faults"]:
        raise PartyUnfit("; ".join(told["faults"]))


party.add_command(backup)
party.add_command(restore)


def own_passphrase(path: Path) -> bytes | None:
    """Obtain the passphrase of the key that a party file names."""
    from vertikal.node.config.party_file import PartyFile

    content = PartyFile.load(path)
    file = content.passphrase_file
    return passphrase(
        path.parent / content.key,
        None if file is None else path.parent / os.path.expandvars(file),
    )
