"""Patience with a server that is gone: dial again, later and later, until there is no time left.

A server that was killed has given the round up that was under way, and each connection has fresh
secrets, so whoever dials again takes part in another round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

from vertikal.errors import DeadlineExceeded, PeerStopped

T = TypeVar("T")
D = TypeVar("D")

LONGEST = 60.0
"""Seconds between two tries at most: a server allows 120 connections an hour by default."""


def stay_with(
    connect: Callable[[], AbstractContextManager[D]],
    act: Callable[[D, float], T],
    *,
    seconds: float = 3600.0,
    progress: Callable[[str], object] = bool,
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Connect and act; again whenever the server is gone, as long as ``seconds`` last.

    ``act`` gets what ``connect`` made and the seconds that are left. What a client refuses, and
    what a server refuses, is not tried again.
    """
    end = time.monotonic() + seconds
    for wait in _waits():
        try:
            with connect() as device:
                return act(device, max(0.0, end - time.monotonic()))
        except (PeerStopped, DeadlineExceeded) as error:
            if time.monotonic() + wait >= end:
                raise
            progress(f"{error}; dialling again in {wait:g} s")
            sleep(wait)
    raise AssertionError("not reached")


def _waits() -> Iterator[float]:
    wait = 1.0
    while True:
        yield wait
        wait = min(2 * wait, LONGEST)
