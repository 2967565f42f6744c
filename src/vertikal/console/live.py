"""Pages that change by themselves: parts of a page, sent again whenever they have changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from vertikal.errors import VertikalError

PAUSE = 1.0
"""Seconds between two looks."""
SIGN_OF_LIFE = 15.0
"""Seconds after which something is sent though nothing has changed."""
MOST_STREAMS = 40
"""Pages that may watch at once."""


class Streams:
    """Counts the pages that watch, and ends them all when the console stops."""

    def __init__(self) -> None:
        self.open = 0
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


async def events(
    streams: Streams,
    look: Callable[[], dict[str, str]],
    is_admitted: Callable[[], bool],
    run: Callable[..., Any],
) -> AsyncIterator[bytes]:
    """Yield server-sent events: "regions" with what has changed, "away" while the service is.

    ``look`` makes the regions of the page, and is called by ``run`` in another thread. A session
    that has ended gets "ended", and nothing more.
    """
    sent: dict[str, str] = {}
    away = ""
    quiet = 0.0
    streams.open += 1
    try:
        # A browser that has lost the connection comes again after so many milliseconds.
        yield b"retry: 2000\n\n"
        while not streams.stopped:
            if not await run(is_admitted):
                yield _event("ended", {})
                return
            try:
                regions = await run(look)
            except VertikalError as error:
                if str(error) != away:
                    away = str(error)
                    yield _event("away", {"words": " ".join(away.split())})
                    quiet = 0.0
            else:
                changed = {key: one for key, one in regions.items() if sent.get(key) != one}
                if changed or away:
                    yield _event("regions", changed)
                    quiet = 0.0
                sent, away = regions, ""
            if quiet >= SIGN_OF_LIFE:
                yield b": still here\n\n"
                quiet = 0.0
            await asyncio.sleep(PAUSE)
            quiet += PAUSE
    finally:
        streams.open -= 1


def _event(name: str, content: dict[str, str]) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(content) + b"\n\n"
