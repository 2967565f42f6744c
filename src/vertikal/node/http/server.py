"""An HTTP server on loopback, in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vertikal.errors import InputError
from vertikal.node.http import connections

UNIX = "unix:"
"""Beginning of an address that is the path of a socket."""


class HttpServer:
    """Serves an application at an address; ``setting`` names it in messages, as ``[http]``.

    ``application`` is made with a function that hears of a client whose request showed the token:
    all other connections are strangers, which have some seconds each.
    """

    def __init__(
        self, listen: str, setting: str, application: Callable[[Callable[[Any], object]], Any]
    ) -> None:
        self._listen = listen
        self._setting = setting
        self._application = application
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self.port = 0

    def start(self) -> None:
        """Listen; requests may come as soon as this returns."""
        try:
            import uvicorn
        except ModuleNotFoundError:
            raise InputError(
                f"{self._setting} needs starlette and uvicorn: pip install 'vertikal[node]'"
            ) from None
        try:
            listening = _listen(self._listen)
        except OSError as error:
            raise InputError(
                f"{self._setting} cannot listen at {self._listen}: {error.strerror or error}"
            ) from None
        local = listening.family == socket.AF_UNIX
        self.port = 0 if local else int(listening.getsockname()[1])
        strangers = connections.Strangers()
        config = uvicorn.Config(
            self._application(strangers.remove),
            # Whoever may open a socket in the store is the owner, and no stranger.
            http="h11" if local else connections.protocol(strangers),
            ws="none",
            log_level="error",
            access_log=False,
            timeout_keep_alive=30,
            h11_max_incomplete_event_size=16384,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name=self._setting, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(5.0)


def _listen(address: str) -> socket.socket:
    """Open a socket at an address, where connections wait in line until a server takes them."""
    if address.startswith(UNIX):
        path = address.removeprefix(UNIX)
        listening = socket.socket(socket.AF_UNIX)
        name: object = path
        Path(path).unlink(missing_ok=True)
    else:
        host, _, port = address.rpartition(":")
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        name = (host.strip("[]"), int(port))
    try:
        listening.bind(name)  # type: ignore[arg-type]
        if address.startswith(UNIX):
            Path(path).chmod(0o600)
        listening.listen(64)
    except OSError:
        listening.close()
        raise
    return listening
