"""``vertikal console``: this party's own web page."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import click

from vertikal.cli.terminal.output import json_option, print_json
from vertikal.cli.terminal.party_option import party_option


@click.command()
@click.option("--viewer", is_flag=True, help="A link for looking only: who has it decides nothing.")
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Address on loopback; that of [console], or any free port, by default.",
)
@click.option("--no-open", is_flag=True, help="Print the link, and open no browser.")
@click.option("--sign-out", is_flag=True, help="End all sessions and take back all links.")
@click.option("--beside", is_flag=True, hidden=True, help="Serve until standard input ends.")
@json_option
@party_option
def console(
    viewer: bool,
    listen: str | None,
    no_open: bool,
    sign_out: bool,
    beside: bool,
    as_json: bool,
    party: Path | None,
) -> None:
    """Open this party's web page.

    It prints a link that is good once, for ten minutes, and opens it in a browser. The page shows
    this party's view: jobs to decide about, runs, models, tables and the audit log. A console that
    runs already gets another link; otherwise this command serves it until it is stopped.
    """
    from vertikal.client.connection import Connection
    from vertikal.console.server import ConsolePlace, ConsoleServer
    from vertikal.console.sessions import APPROVER, VIEWER
    from vertikal.errors import InputError
    from vertikal.mesh.addresses import check_address
    from vertikal.node.config.party_file import ConsoleAddress, PartyFile

    connection = Connection.to(party)
    place = ConsolePlace.of(connection)
    if sign_out:
        ended = place.sessions.end_all()
        if as_json:
            print_json({"ended": ended})
        else:
            click.echo(f"{ended} session{'s' * (ended != 1)} ended")
        return
    role = VIEWER if viewer else APPROVER
    origin = None if beside else place.running()
    if origin is not None:
        if listen is not None:
            raise InputError(f"--listen: a console of {connection.name} runs already, at {origin}")
        _hand_out(place.link(origin, role), role, as_json, no_open)
        return
    settings = PartyFile.load(connection.file).console
    if listen is not None:
        check_address(listen, plaintext=True)
        settings = ConsoleAddress(listen)
    server = ConsoleServer(connection, settings)
    stopped = threading.Event()

    def stop(_: int, __: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    origin = server.start()
    if beside:
        click.echo(f"served at {origin}; `vertikal console` gives a link")
        threading.Thread(target=_until_input_ends, args=(stopped,), daemon=True).start()
    else:
        _hand_out(place.link(origin, role), role, as_json, no_open)
        if not as_json:
            click.echo("Ctrl-C stops it; another `vertikal console` prints another link")
    stopped.wait()
    server.stop()
    # A page that still watches must not keep the process.
    sys.stdout.flush()
    os._exit(0)


def _hand_out(link: str, role: str, as_json: bool, no_open: bool) -> None:
    """Print a link, and open it where there is a browser."""
    if as_json:
        print_json({"link": link, "role": role})
    else:
        click.echo(f"console ({role})  {link}")
    sys.stdout.flush()
    shown = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not no_open and not as_json and shown and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(link)


def _until_input_ends(stopped: threading.Event) -> None:
    sys.stdin.read()
    stopped.set()
