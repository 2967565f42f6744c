"""An HTTP server on loopback, in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from vertikal.errors import InputError
from vertikal.node.http import connections


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
        host, _, port = self._listen.rpartition(":")
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host.strip("[]"), int(port)))
            # From here on connections wait in line until the server takes them.
            listening.listen(64)
        except OSError as error:
            listening.close()
            raise InputError(
                f"{self._setting} cannot listen at {self._listen}: {error.strerror}"
            ) from None
        self.port = int(listening.getsockname()[1])
        strangers = connections.Strangers()
        config = uvicorn.Config(
            self._application(strangers.remove),
            http=connections.protocol(strangers),
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
