"""Ports for servers of tests, each given once.

The system gives outgoing connections ports from a range of its own, and "any free port" too. A port
found there may be taken by somebody's connection before the server that wants it binds it. These
lie below that range, and a lock held until the process ends keeps test processes beside this one
from giving the same.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

LOWEST, HIGHEST = 10_000, 32_000


def _claimed() -> Iterator[int]:
    path = Path(tempfile.gettempdir()) / f"vertikal-test-ports-{os.getuid()}"
    with path.open("a") as locks:
        # Processes begin far from each other, so that they rarely try what another has.
        start, many = os.getpid() * 997, HIGHEST - LOWEST
        for number in range(many):
            port = LOWEST + (start + number) % many
            try:
                fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            except OSError:
                continue
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    continue
            yield port


_ports = _claimed()


def free_port() -> int:
    """Give a port of this machine that nobody listens on, and that no test was given before."""
    return next(_ports)
