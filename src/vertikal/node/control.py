"""The socket through which an owner's commands reach the service of the party.

It lies in the store, a folder that nobody but the owner may enter. A request is one line of JSON,
``{"command": ..., ...}``; so is the answer, ``{"answer": ...}`` or ``{"error": ...}``.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from vertikal.errors import InputError, VertikalError
from vertikal.records import from_json

SOCKET = "control.sock"
MAX_REQUEST = 64 << 20
_ANSWER = 600.0
"""Seconds that a command waits for its answer."""

PAUSE = 0.2
"""Seconds to wait after a connection that could not be accepted."""


class ControlServer:
    """Answers requests, each connection in a thread of its own."""

    def __init__(self, store: Path, answer: Callable[[dict[str, Any]], Any]) -> None:
        self._path = store / SOCKET
        self._answer = answer
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path.unlink(missing_ok=True)
        with _reachable(self._path) as name:
            self._socket.bind(name)
        os.chmod(self._path, 0o600)
        self._socket.listen(16)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._accept, name="control", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                # Too many open files, most likely: the owner must get in once some are closed.
                self._stopped.wait(PAUSE)
                continue
            try:
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            except RuntimeError:
                # No thread is left: the command sees the connection end.
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(_ANSWER)
            try:
                request = from_json(_line(connection), dict[str, Any])
                answer: dict[str, Any] = {"answer": self._answer(request)}
            except VertikalError as error:
                answer = {"error": " ".join(str(error).split())}
            except msgspec.DecodeError as error:
                answer = {"error": f"request: {error}"}
            except Exception as error:
                # A defect: the owner finds its traceback in the output of the service.
                traceback.print_exc()
                answer = {"error": f"the service failed ({type(error).__name__}); see its output"}
            connection.sendall(msgspec.json.encode(answer) + b"\n")


def ask(store: Path, command: str, **arguments: Any) -> Any:
    """Ask the service of this store; an error that it reports is raised here."""
    path = store / SOCKET
    request = msgspec.json.encode({"command": command, **arguments}) + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER)
            with _reachable(path) as name:
                connection.connect(name)
            connection.sendall(request)
            answer: Mapping[str, Any] = from_json(_line(connection), dict[str, Any])
    except (FileNotFoundError, ConnectionRefusedError):
        raise InputError(
            f"the service of this party does not run (no answer at {path.name!r} in its store); "
            "`vertikal party start` starts it"
        ) from None
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"the service of this party ended the connection: {error}") from None
    if "error" in answer:
        raise InputError(str(answer["error"]))
    return answer["answer"]


def _line(connection: socket.socket) -> bytes:
    received = bytearray()
    while not received.endswith(b"\n"):
        piece = connection.recv(1 << 16)
        if not piece:
            raise ConnectionResetError("the other side closed without a whole line")
        received += piece
        if len(received) > MAX_REQUEST:
            raise InputError(f"a request must have at most {MAX_REQUEST} bytes; send it in parts")
    return bytes(received)


@contextlib.contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """Give a name of a socket's path that is short enough, however deep its folder lies."""
    if len(os.fsencode(path)) < 100:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
