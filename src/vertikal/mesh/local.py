"""The local mesh: parties as threads of one process, arrays handed over by reference.

It is a full peer of the other transports: the same checks, deadlines and back-pressure. Since all
mailboxes lie in one place, it can follow who waits for whom and name the party at the end of the
chain when a wait runs out.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from vertikal.errors import DeadlineExceeded, PeerStopped
from vertikal.mesh.interface import DEADLINE, Mesh
from vertikal.mesh.wire import Frame

CAPACITY = 64 << 20
"""Bytes that may lie between two parties before the sender waits."""


@dataclass
class _Wait:
    place: tuple[str, ...]  # a mailbox that a frame is to come to, or a link that needs room
    peer: str
    what: str
    since: float
    changed: threading.Condition


@dataclass
class _Hub:
    """The mailboxes of all parties, and who waits for whom."""

    capacity: int
    now: Callable[[], float]
    lock: threading.RLock = field(default_factory=threading.RLock)
    boxes: dict[tuple[str, str, str], deque[Frame]] = field(default_factory=dict)
    load: dict[tuple[str, str], int] = field(default_factory=dict)
    waits: dict[tuple[str, int], _Wait] = field(default_factory=dict)
    """By party and thread: a party may wait for several things at once."""
    ended: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def wake(self, place: tuple[str, ...] | None = None) -> None:
        """Wake who waits at this place; None: everybody.

        One thread at a time can go on anyway, so the others had better sleep.
        """
        for wait in self.waits.values():
            if place is None or wait.place == place:
                wait.changed.notify()

    def chain(self, name: str, wait: _Wait | None) -> str:
        """Follow waits from this one on: 'a waits for b (2.0 s); b has sent nothing'."""
        links, seen = [], set()
        while wait is not None and name not in seen:
            seen.add(name)
            links.append(
                f"{name} waits for {wait.peer} ({wait.what}, {self.now() - wait.since:.1f} s)"
            )
            name = wait.peer
            wait = next((other for (who, _), other in self.waits.items() if who == name), None)
        end = f"{name} {self.ended[name]}" if name in self.ended else f"{name} has sent nothing"
        return "; ".join([*links, end])


class LocalMesh(Mesh):
    """One party's end of a mesh inside this process; see `local_meshes`."""

    def __init__(self, me: str, parties: tuple[str, ...], deadline: float, hub: _Hub) -> None:
        super().__init__(me, parties, deadline)
        self._hub = hub

    def put_frame(self, to: str, frame: Frame) -> None:
        hub, link = self._hub, (self.me, to)

        def room() -> bool:
            # A party that has ended reads no more: do not wait for it. `recv` tells its failure.
            waiting = hub.load.get(link, 0)
            return waiting == 0 or waiting + frame.size <= hub.capacity or to in hub.ended

        with hub.lock:
            self._wait_until(room, link, to, f"room for {frame.header.tag!r}", self.deadline)
            box = (to, self.me, frame.header.tag)
            hub.boxes.setdefault(box, deque()).append(frame)
            hub.load[link] = hub.load.get(link, 0) + frame.size
            hub.wake(box)

    def get_frame(self, from_: str, tag: str, timeout: float) -> Frame:
        hub, box = self._hub, (self.me, from_, tag)
        with hub.lock:
            self._wait_until(lambda: bool(hub.boxes.get(box)), box, from_, repr(tag), timeout)
            frame = hub.boxes[box].popleft()
            if not hub.boxes[box]:
                del hub.boxes[box]
            hub.load[from_, self.me] -= frame.size
            hub.wake((from_, self.me))
            return frame

    def _wait_until(
        self,
        ready: Callable[[], bool],
        place: tuple[str, ...],
        peer: str,
        what: str,
        timeout: float,
    ) -> None:
        hub = self._hub
        if ready():
            return
        since = hub.now()
        key = self.me, threading.get_ident()
        wait = _Wait(place, peer, what, since, threading.Condition(hub.lock))
        hub.waits[key] = wait
        try:
            while not ready():
                spared = (self._excused - {peer}) | {self.me}
                others = {name: why for name, why in hub.failed.items() if name not in spared}
                if others:
                    name, why = next(iter(others.items()))
                    raise PeerStopped.of(
                        name,
                        f"{self.me}: {name} stopped ({why}) while {self.me} waited for {what} "
                        f"from {peer}, for {hub.now() - since:.1f} s so far",
                    )
                if peer in hub.ended:
                    raise PeerStopped.of(
                        peer,
                        f"{self.me}: {peer} {hub.ended[peer]} without sending {what}; "
                        f"{self.me} waited for it for {hub.now() - since:.1f} s",
                    )
                left = since + timeout - hub.now()
                if left <= 0:
                    raise DeadlineExceeded(
                        f"{self.me}: nothing from {peer} for {what} within {timeout:g} s; "
                        f"{hub.chain(self.me, wait)}"
                    )
                wait.changed.wait(min(left, threading.TIMEOUT_MAX))
        finally:
            del hub.waits[key]

    def close(self) -> None:
        with self._hub.lock:
            self._hub.ended.setdefault(self.me, "has ended")
            self._hub.wake()

    def fail(self, reason: str) -> None:
        with self._hub.lock:
            self._hub.ended.setdefault(self.me, "has failed")
            self._hub.failed.setdefault(self.me, reason)
            self._hub.wake()


def local_meshes(
    parties: Sequence[str],
    deadline: float = DEADLINE,
    capacity: int = CAPACITY,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, LocalMesh]:
    """Connect parties in this process: one end of the mesh per name.

    ``capacity`` bounds the bytes that wait between two parties; a single larger message still
    passes. ``now`` is the clock of all waits, in seconds.
    """
    hub = _Hub(capacity, now)
    names = tuple(parties)
    return {name: LocalMesh(name, names, deadline, hub) for name in names}
