"""The server of one party's console: one at a time, found by commands through the party's store."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from vertikal.client.connection import Connection
from vertikal.console.application import Console
from vertikal.console.party_view import PartyView
from vertikal.console.sessions import Sessions
from vertikal.errors import InputError, VertikalError
from vertikal.files import private_folder, write_whole
from vertikal.node.config.party_file import ConsoleAddress as Settings
from vertikal.node.http.server import UNIX, HttpServer
from vertikal.node.storage.audit_log import AuditLog
from vertikal.records import from_json

FOLDER = "console"
"""Folder of the store with links, sessions and the address of a console that runs."""
ANYWHERE = "127.0.0.1:0"
"""Address of a console that is told none: any free port of loopback."""


class _Served(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    origin: str


@dataclass(frozen=True)
class ConsolePlace:
    """The folder of a party's console."""

    folder: Path

    @classmethod
    def of(cls, connection: Connection) -> ConsolePlace:
        return cls(private_folder(connection.store / FOLDER))

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.folder)

    def link(self, origin: str, role: str) -> str:
        """Make a one-time link."""
        return f"{origin}/enter?token={self.sessions.make_link(role)}"

    def running(self) -> str | None:
        """Return the address of the console that runs, if one does."""
        lock = self.lock()
        if lock is not None:
            lock.close()
            return None
        with suppress(OSError, msgspec.DecodeError):
            return from_json((self.folder / "address.json").read_bytes(), _Served).origin
        return None

    def lock(self) -> IO[bytes] | None:
        """Lock the console for this process; None if another process serves it."""
        number = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        file = os.fdopen(number, "wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        return file

    def tell_address(self, origin: str) -> None:
        write_whole(self.folder / "address.json", msgspec.json.encode(_Served(origin)))


class ConsoleServer:
    """A console that serves until it is stopped."""

    def __init__(self, connection: Connection, settings: Settings | None = None) -> None:
        settings = settings or Settings(ANYWHERE)
        self.place = ConsolePlace.of(connection)
        lock = self.place.lock()
        if lock is None:
            raise InputError(
                f"a console of {connection.name} runs already; `vertikal console` gives a link"
            )
        self._lock = lock
        self._settings = settings
        self._log = AuditLog(connection.store / "audit.log", connection.name)
        listen = settings.listen
        if listen.startswith(UNIX):
            path = connection.file.parent / listen.removeprefix(UNIX)
            listen = f"{UNIX}{path}"
        self._console = Console(PartyView(connection), self.place.sessions, note=self._note)
        self._server = HttpServer(listen, "[console]", self._console.admitting)

    def start(self) -> str:
        """Listen; return the address under which browsers may ask."""
        try:
            self._server.start()
        except BaseException:
            self._lock.close()
            raise
        # Requests before this one are refused: no address is that of the console yet.
        self._console.origins = self._origins()
        self.place.tell_address(self._console.origins[0])
        return self._console.origins[0]

    def stop(self) -> None:
        """Stop serving; sessions are kept for the next one."""
        self._console.streams.stop()
        self._server.stop()
        self._lock.close()

    def _note(self, event: str, **facts: str) -> None:
        """Write to the audit log; a full disk keeps nobody from looking."""
        with suppress(VertikalError):
            self._log.record(event, **facts)

    def _origins(self) -> tuple[str, ...]:
        if self._settings.origin is not None:
            parts = urlsplit(self._settings.origin)
            return (f"{parts.scheme}://{parts.netloc.lower()}",)
        host = self._settings.listen.rpartition(":")[0]
        port = self._server.port
        hosts = dict.fromkeys((host, "localhost"))
        return tuple(f"http://{one}:{port}" for one in hosts)
