"""The status page of an aggregation server: rounds, who is there, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vertikal.aggregation.server.aggregation_server import ServerStatus
from vertikal.reporting.rendering import render_page
from vertikal.reporting.units import bytes_text, seconds_text
from vertikal.version import __version__


def status_page(status: ServerStatus) -> str:
    """Write the status as one HTML page."""
    now = status.round
    if now is None:
        line = f"No round is under way: {status.waits}."
    else:
        line = (
            f"A round of {now['clients']} clients is under way: {now['stage']}, "
            f"{now['answered']} have answered, {now['there']} are there."
        )
    rounds = [
        (
            one["number"],
            one["state"],
            one["clients"],
            one["survivors"],
            seconds_text(one["seconds"]),
            bytes_text(one["received"]),
            bytes_text(one["sent"]),
            one["reason"] or None,
        )
        for one in status.rounds
    ]
    return render_page(
        "vertikal.aggregation.server",
        "status.html",
        title=status.name,
        subtitle=f"aggregation server at {status.address}",
        versions={"vertikal": __version__},
        headline={
            status.kind: status.rows,
            "connected": status.connected,
            "ready": status.ready,
            "a round opens at": status.opens,
            "peak memory": f"{status.memory_mb:.0f} MB",
        },
        line=line,
        rounds=rounds,
        faults=list(status.faults.items()),
    )


def application(status: Callable[[], ServerStatus]) -> Any:
    """Make the route ``GET /`` around a server."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(status_page(status()), headers={"Cache-Control": "no-store"})

    return Starlette(routes=[Route("/", page, methods=["GET"])])
