"""``vertikal party``: the service of one party."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

import click

from vertikal.cli.party_option import VARIABLE, party_file

PASSPHRASE = "VERTIKAL_PASSPHRASE"


@click.group()
def party() -> None:
    """Run the service of a party."""


@party.command()
@click.argument(
    "file", type=click.Path(path_type=Path, dir_okay=False), required=False, envvar=VARIABLE
)
def start(file: Path | None) -> None:
    """Run the service of the party in FILE, until it is stopped.

    Without FILE it is the party file that VERTIKAL_PARTY names, or the only one in this folder.
    Jobs, approvals and checkpoints are on disk: a service that is started again goes on where it
    was.
    """
    began = time.monotonic()
    from vertikal.node.runs.memory import share_one_arena
    from vertikal.node.service import Service

    share_one_arena()
    stopped = threading.Event()

    def stop(_: int, __: FrameType | None) -> None:
        stopped.set()

    # A signal during the start ends it too.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    service = Service(party_file(file), say, passphrase())
    service.start()
    say(f"{service.me} is ready, {time.monotonic() - began:.2f} s after its start")
    stopped.wait()
    say("stopping")
    service.stop()
    # Whatever thread of a library still waits for a peer must not keep the process.
    os._exit(0)


def passphrase() -> bytes | None:
    """Read the passphrase of the key from the environment, if there is one."""
    given = os.environ.get(PASSPHRASE)
    return given.encode() if given else None


def say(words: str) -> None:
    """Print a line with the time before it; where nobody reads any more, go on in silence."""
    # One write per line, so that the lines of several threads stay whole.
    with suppress(OSError, ValueError):
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {words}\n")
        sys.stdout.flush()
