"""Streams of the console: one look for all who watch, sessions that end, and room for all."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from vertikal.console import live
from vertikal.console.live import MOST_OF_SESSION, MOST_STREAMS, Streams, Watcher
from vertikal.errors import InputError


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(live, "PAUSE", 0.005)


class Party:
    """A party as a page shows it, which counts how often it is looked at."""

    def __init__(self):
        self.regions = {"state": "waits", "log": "begun"}
        self.looks = 0
        self.away = ""
        self.ended = set()
        self.broken = False

    def look(self):
        self.looks += 1
        if self.broken:
            raise ZeroDivisionError
        if self.away:
            raise InputError(self.away)
        return dict(self.regions)

    def find(self, cookie):
        return None if cookie in self.ended else object()


async def run(function, *arguments):
    return function(*arguments)


def parsed(raw):
    """The name and the content of an event; of anything else, nothing."""
    lines = raw.decode().splitlines()
    if not lines[0].startswith("event: "):
        return None
    return lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))


def watching(streams, party, cookie="ada", key="job"):
    return streams.events(key, Watcher(cookie, cookie), party.look, party.find, run)


async def next_event(stream):
    while True:
        async with asyncio.timeout(20):
            found = parsed(await anext(stream))
        if found is not None:
            return found


def test_only_what_has_changed_is_sent_again():
    async def watch():
        party = Party()
        async with aclosing(watching(Streams(), party)) as stream:
            assert await next_event(stream) == ("regions", party.regions)
            party.regions["log"] = "goes on"
            assert await next_event(stream) == ("regions", {"log": "goes on"})

    asyncio.run(watch())


def test_ten_pages_cost_one_look():
    async def watch():
        party, streams = Party(), Streams()
        many = [watching(streams, party, f"visitor {number}") for number in range(10)]
        for each in many:
            assert await anext(each) == b"retry: 2000\n\n"
        assert streams.open == 10
        assert await asyncio.gather(*map(next_event, many)) == [("regions", party.regions)] * 10
        assert party.looks == 1
        for each in many:
            await each.aclose()
        assert streams.open == 0

    asyncio.run(watch())


def test_who_comes_later_gets_all_of_the_page():
    async def watch():
        party, streams = Party(), Streams()
        first = watching(streams, party)
        await next_event(first)
        party.regions["state"] = "runs"
        assert await next_event(first) == ("regions", {"state": "runs"})
        second = watching(streams, party, "bob")
        assert await next_event(second) == ("regions", party.regions)

    asyncio.run(watch())


def test_a_service_that_is_away_is_told_once_and_then_all_anew():
    async def watch():
        party = Party()
        stream = watching(Streams(), party)
        await next_event(stream)
        party.away = "the service\ndoes not run"
        assert await next_event(stream) == ("away", {"words": "the service does not run"})
        looks = party.looks
        while party.looks < looks + 3:
            await asyncio.sleep(0.005)
        party.away = ""
        assert await next_event(stream) == ("regions", party.regions)

    asyncio.run(watch())


def test_a_session_that_has_ended_gets_nothing_more_and_others_do():
    async def watch():
        party, streams = Party(), Streams()
        ada, bob = watching(streams, party), watching(streams, party, "bob")
        await asyncio.gather(next_event(ada), next_event(bob))
        party.ended.add("ada")
        party.regions["state"] = "runs"
        assert await next_event(ada) == ("ended", {})
        with pytest.raises(StopAsyncIteration):
            await anext(ada)
        assert await next_event(bob) == ("regions", {"state": "runs"})

    asyncio.run(watch())


def test_the_oldest_page_of_a_session_makes_room():
    async def watch():
        party, streams = Party(), Streams()
        other = watching(streams, party, "bob")
        await next_event(other)
        own = [watching(streams, party, key=number) for number in range(MOST_OF_SESSION + 1)]
        for each in own:
            await next_event(each)
        name, told = await next_event(own[0])
        assert (name, told["words"]) == ("displaced", "other pages of this console are open")
        party.regions["state"] = "runs"
        for each in (*own[1:], other):
            assert await next_event(each) == ("regions", {"state": "runs"})

    asyncio.run(watch())


def test_there_is_a_most_of_pages_that_watch():
    async def watch():
        party, streams = Party(), Streams()
        many = [watching(streams, party, f"{number}") for number in range(MOST_STREAMS)]
        for each in many:
            await anext(each)
        late = watching(streams, party, "late")
        assert (await next_event(late))[0] == "displaced"
        assert streams.open == MOST_STREAMS
        await many[0].aclose()
        assert (await next_event(watching(streams, party, "late")))[0] == "regions"

    asyncio.run(watch())


def test_a_look_that_fails_ends_the_stream_and_the_next_one_looks_again():
    async def watch():
        party, streams = Party(), Streams()
        stream = watching(streams, party)
        await next_event(stream)
        party.broken = True
        with pytest.raises(StopAsyncIteration):
            await next_event(stream)
        party.broken = False
        assert await next_event(watching(streams, party)) == ("regions", party.regions)

    asyncio.run(watch())
