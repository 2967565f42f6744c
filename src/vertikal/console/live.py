"""Pages that change by themselves: parts of a page, sent again whenever they have changed.

However many browsers watch a page, it is looked at once a second, and what has changed is encoded
once for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from vertikal.errors import VertikalError

PAUSE = 1.0
"""Seconds between two looks."""
SIGN_OF_LIFE = 15.0
"""Seconds after which something is sent though nothing has changed."""
MOST_STREAMS = 40
"""Pages that may watch at once."""
MOST_OF_SESSION = 4
"""Pages of one session that may watch: a browser opens six connections to a site, and needs some
of them to load pages."""

Look = Callable[[], dict[str, str]]
Run = Callable[..., Awaitable[Any]]


@dataclass(eq=False)
class Watcher:
    """One browser page that watches: the cookie that it showed, and whether it must make room."""

    cookie: str
    session: str
    displaced: bool = False


@dataclass(eq=False)
class WatchedPage:
    """One page, and those who watch it.

    ``number`` counts the events so far; ``event`` is the last one, for who has seen all others.
    """

    look: Look
    find: Callable[[str], object]
    watchers: list[Watcher] = field(default_factory=list)
    number: int = 0
    event: bytes = b""
    over: bool = False
    task: asyncio.Task[None] | None = None
    _regions: dict[str, str] = field(default_factory=dict)
    _away: str = ""
    _ended: set[str] = field(default_factory=set)
    _looked: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, run: Run) -> None:
        """Look again and again, in another thread, until nobody watches."""
        try:
            while self.watchers:
                await self._look_once(run)
                self._wake()
                await asyncio.sleep(PAUSE)
        finally:
            self.over = True
            self._wake()

    def has_ended(self, one: Watcher) -> bool:
        """Return True if the session of a watcher had ended at the last look."""
        return one.cookie in self._ended

    def whole(self) -> bytes:
        """Return the event that tells all of the page, for who has not seen the one before."""
        return self._event(self._regions)

    async def looked(self) -> None:
        """Wait for the next look."""
        if not self.over:
            await self._looked.wait()

    async def _look_once(self, run: Run) -> None:
        cookies = {one.cookie for one in self.watchers}
        self._ended = await run(self._ended_of, cookies)
        if self._ended == cookies:
            return
        regions, before = self._regions, self._away
        try:
            regions, self._away = await run(self.look), ""
        except VertikalError as error:
            self._away = " ".join(str(error).split())
        changed = {key: one for key, one in regions.items() if self._regions.get(key) != one}
        self._regions = regions
        if changed or self._away != before:
            self.number += 1
            # Who lost the service, or came while it was away, gets all that there is now.
            self.event = self._event(regions if before else changed)

    def _ended_of(self, cookies: set[str]) -> set[str]:
        return {cookie for cookie in cookies if self.find(cookie) is None}

    def _wake(self) -> None:
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()

    def _event(self, regions: dict[str, str]) -> bytes:
        return _event("away", {"words": self._away}) if self._away else _event("regions", regions)


class Streams:
    """All pages that are watched, by their keys; ends them all when the console stops."""

    def __init__(self) -> None:
        self.stopped = False
        self._pages: dict[Any, WatchedPage] = {}

    @property
    def open(self) -> int:
        """Number of browser pages that watch."""
        return sum(len(page.watchers) for page in self._pages.values())

    def stop(self) -> None:
        self.stopped = True

    async def events(
        self, key: Any, one: Watcher, look: Look, find: Callable[[str], object], run: Run
    ) -> AsyncIterator[bytes]:
        """Yield server-sent events: "regions" with what has changed, "away" while the service is.

        ``look`` makes the regions of the page, ``find`` finds the session of a cookie; both are
        called by ``run`` in another thread. A session that has ended gets "ended", and nothing
        more. A page that has to make room gets "displaced", and may come again.
        """
        if self.open >= MOST_STREAMS:
            yield _event("displaced", {"words": "too many pages watch at once"})
            return
        self._make_room(one.session)
        page = self._pages.get(key)
        if page is None or page.over:
            page = self._pages[key] = WatchedPage(look, find)
        page.watchers.append(one)
        if page.task is None:
            page.task = asyncio.create_task(page.follow(run))
        seen, quiet = 0, 0.0
        try:
            # A browser that has lost the connection comes again after so many milliseconds.
            yield b"retry: 2000\n\n"
            if page.number:
                seen = page.number
                yield page.whole()
            while not self.stopped and not page.over:
                await page.looked()
                if page.has_ended(one):
                    yield _event("ended", {})
                    return
                if one.displaced:
                    yield _event("displaced", {"words": "other pages of this console are open"})
                    return
                if seen != page.number:
                    event = page.event if seen == page.number - 1 else page.whole()
                    # Before it is sent: a slow browser takes this up some looks later.
                    seen, quiet = page.number, 0.0
                    yield event
                elif quiet >= SIGN_OF_LIFE:
                    yield b": still here\n\n"
                    quiet = 0.0
                quiet += PAUSE
        finally:
            page.watchers.remove(one)
            if not page.watchers:
                page.task.cancel()
                if self._pages.get(key) is page:
                    del self._pages[key]

    def _make_room(self, session: str) -> None:
        """Displace the page of this session that has watched longest, if there are too many."""
        own = [
            each
            for page in self._pages.values()
            for each in page.watchers
            if each.session == session and not each.displaced
        ]
        if len(own) >= MOST_OF_SESSION:
            own[0].displaced = True


def _event(name: str, content: dict[str, str]) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(content) + b"\n\n"
