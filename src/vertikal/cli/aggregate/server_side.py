"""``vertikal aggregate``: the authority, the server and what it tells."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import click

from vertikal.cli.terminal.output import json_option, print_json, print_table

_SERVER = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def authority(folder: Path) -> None:
    """Make the key in FOLDER that signs the tickets of clients.

    The server file names its public half, authority.pub. Whoever has the other half can invent
    clients: it should not be whoever runs the server.
    """
    from vertikal.aggregation.device_folder import make_authority

    click.echo(f"{folder / 'authority.pub'}: {make_authority(folder).public.hex()}")


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--server",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The server file.",
)
@click.option(
    "--authority",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder that `vertikal aggregate authority` made.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder in which each client gets a folder.",
)
@click.option("--address", help="Address that clients dial, if not the one that is listened at.")
@click.option("--key", help="Public key that a client made itself, in hexadecimal.")
def enroll(
    names: tuple[str, ...],
    file: Path,
    authority: Path,
    into: Path,
    address: str | None,
    key: str | None,
) -> None:
    """Sign the keys of clients, and make keys where there are none.

    Each gets a folder with its key, its ticket and what it knows of the server. A client that has
    made its own key, with `vertikal aggregate key`, gives its public half; its folder then has
    everything but the key.
    """
    from vertikal.aggregation.device_folder import (
        DeviceFolder,
        ServerAddress,
        make_authority,
        sign_for,
    )
    from vertikal.aggregation.server.server_file import ServerFile
    from vertikal.errors import InputError
    from vertikal.files import private_folder
    from vertikal.secure.keys.identity import Certificate

    content = ServerFile.load(file)
    signer = make_authority(authority)
    certificate = Certificate.load(file.parent / content.certificate)
    server = ServerAddress(
        content.name, address or content.listen, certificate.fingerprint, signer.public
    )
    if key is not None and len(names) != 1:
        raise InputError.of("--key", "given with one name", list(names))
    private_folder(into)
    for name in names:
        folder = into / name
        if folder.parent != into or name.startswith("."):
            raise InputError.of("name", "one that a folder can have", name)
        if key is not None:
            try:
                public = bytes.fromhex(key)
            except ValueError:
                raise InputError.of("--key", "64 hexadecimal digits", key) from None
            device = DeviceFolder(private_folder(folder))
            device.keep_server(server)
        else:
            device = DeviceFolder.create(folder, server)
            public = device.key.public
        device.keep_ticket(sign_for(signer, server, name, public))
        click.echo(f"{name} is enrolled: {folder}")


@click.command()
@_SERVER
def serve(file: Path) -> None:
    """Run the server in FILE, until it is stopped.

    Rounds open by themselves once enough clients are ready. A server that was killed starts again
    between two rounds: the one that was under way is given up, and nothing of it can be opened.
    """
    began = time.monotonic()
    from vertikal.aggregation.server.aggregation_server import AggregationServer
    from vertikal.aggregation.server.status_page import application
    from vertikal.cli.terminal.passphrase import passphrase
    from vertikal.node.http.server import HttpServer

    def say(words: str) -> None:
        click.echo(f"{time.strftime('%H:%M:%S')} {words}")

    async def work() -> None:
        from vertikal.aggregation.server.server_file import ServerFile

        content = ServerFile.load(file)
        secret = passphrase(file.parent / content.key, None)
        server = AggregationServer(file, say, secret)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        page = None
        if content.status is not None:
            page = HttpServer(content.status, "status", lambda _: application(server.status))
            page.start()
            say(f"status page at http://127.0.0.1:{page.port}/")

        def ready() -> None:
            took = time.monotonic() - began
            say(f"{content.name} is ready at port {server.port}, {took:.2f} s after its start")

        await server.run(stop, ready)
        say("stopped")
        if page is not None:
            page.stop()

    asyncio.run(work())


@click.command()
@_SERVER
@json_option
def status(file: Path, as_json: bool) -> None:
    """Tell what the server in FILE is doing, and how its rounds ended."""
    from vertikal.aggregation.server.aggregation_server import read_status
    from vertikal.aggregation.server.server_file import ServerFile

    content = ServerFile.load(file)
    told = read_status(file.parent / content.store)
    if as_json:
        print_json(told)
        return
    age = max(0.0, time.time() - told.written)
    click.echo(
        f"{told.name} at {told.address}: {told.connected} clients are connected, {told.ready} "
        f"ready, as of {age:.0f} s ago"
    )
    if told.round is not None:
        now = told.round
        click.echo(f"round under way: {now['stage']}, {now['answered']} of {now['clients']}")
    elif told.waits:
        click.echo(told.waits)
    print_table(
        ("round", "state", "clients", "in the sum", "seconds", "reason"),
        [
            (
                one["number"],
                one["state"],
                one["clients"],
                one["survivors"],
                f"{one['seconds']:.1f}",
                one["reason"],
            )
            for one in told.rounds
        ],
    )
    if told.faults:
        print_table(("client", "last fault"), list(told.faults.items()))
