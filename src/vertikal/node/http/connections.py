"""Connections to the HTTP endpoint that have not shown the token: few seconds each, and not many.

A request that never ends costs its sender nothing. So a connection counts as a stranger's until a
request on it has shown the token, and again once that is answered. A stranger has some seconds; if
there are too many strangers, the one that has waited longest goes. The owner shows the token at
once, and so is not kept out by any number of strangers.
"""

from __future__ import annotations

import asyncio
from typing import Any

PATIENCE = 10.0
"""Seconds that a connection has to show the token, and that an answered one may be idle."""
MOST_STRANGERS = 128


class Strangers:
    """The connections that have not shown the token, by the address of the other end."""

    def __init__(self) -> None:
        self._waiting: dict[Any, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}

    def add(self, client: Any, transport: asyncio.Transport) -> None:
        """Count a connection as a stranger's, from now on."""
        self.remove(client)
        if len(self._waiting) >= MOST_STRANGERS:
            self._end(next(iter(self._waiting)))
        loop = asyncio.get_running_loop()
        self._waiting[client] = transport, loop.call_later(PATIENCE, self._end, client)

    def remove(self, client: Any) -> None:
        """Count it no more: it has shown the token, or is closed."""
        if client in self._waiting:
            self._waiting.pop(client)[1].cancel()

    def _end(self, client: Any) -> None:
        transport, timer = self._waiting.pop(client)
        timer.cancel()
        transport.abort()


def protocol(strangers: Strangers) -> type[asyncio.Protocol]:
    """Make uvicorn's protocol, whose connections are strangers until they show the token."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Watched(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            strangers.add(self.client, transport)

        def connection_lost(self, exc: Exception | None) -> None:
            strangers.remove(self.client)
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            if not self.transport.is_closing():
                strangers.add(self.client, self.transport)
            super().on_response_complete()

    return Watched
