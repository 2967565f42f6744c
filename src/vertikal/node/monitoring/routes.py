"""The routes ``GET /health`` and ``GET /metrics``, which need no token and tell nothing secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from vertikal.node.http.server import HttpServer
from vertikal.node.monitoring.health import health_of
from vertikal.node.monitoring.metrics import Measured, exposition


def monitor(listen: str, service: Measured) -> HttpServer:
    """Make the server of ``[monitor]``, which is started by its caller."""
    return HttpServer(listen, "[monitor]", lambda _: application(service))


def application(service: Measured) -> Any:
    """Make the routes around a service."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    def health() -> Response:
        well, told = health_of(service)
        return Response(msgspec.json.encode(told), 200 if well else 503, None, "application/json")

    def metrics() -> Response:
        text, kind = exposition(service)
        return Response(text, media_type=kind)

    def route(path: str, make: Callable[[], Response]) -> Route:
        async def answer(_: Request) -> Response:
            return await run_in_threadpool(make)

        return Route(path, answer, methods=["GET"])

    return Starlette(routes=[route("/health", health), route("/metrics", metrics)])
