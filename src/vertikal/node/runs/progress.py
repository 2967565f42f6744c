"""Progress of one party: an observer of its clock that tells of stages, bytes and waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from vertikal.mesh.interface import Mesh
from vertikal.mesh.packets.packet_mesh import PacketMesh


class Waiting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One wait of one party for another, as it was last heard of."""

    who: str
    peer: str
    what: str
    seconds: float


class Moved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes of frames between this party and one other."""

    bytes_in: int
    bytes_out: int


class Progress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Progress of one party, as a line of the live table shows it."""

    party: str
    stage: str = "starting"
    done: int = 0
    total: int | None = None
    note: str = ""
    seconds: float = 0.0  # in this stage
    bytes_in: int = 0
    bytes_out: int = 0
    waits_for: str = ""
    ended: str = ""  # "", "done" or the error
    port: int | None = None  # where this party listens, said once
    result: str = ""  # how good the model is, once that is known
    waits: tuple[Waiting, ...] = ()  # of all parties
    traffic: dict[str, Moved] = {}  # by peer

    def time_left(self) -> float | None:
        """Seconds to the end of the stage, at the pace so far."""
        if not self.total or not self.done or self.ended:
            return None
        return self.seconds * (self.total - self.done) / self.done


Tell = Callable[[Progress], None]
"""Called with a party's progress, from any thread, several times a second."""


class ProgressReporter:
    """Follows one party's stages; `progress` may be called from any thread at any time."""

    def __init__(self, mesh: Mesh, tell: Tell, every: float = 0.25) -> None:
        self._mesh = mesh
        self._tell = tell
        self._every = every
        self._lock = threading.Lock()
        self._stage, self._done, self._note = "starting", 0, ""
        self._total: int | None = None
        self.result = ""
        """The result of the evaluation, once this party knows it."""
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def begin(self, party: str, stage: str, total: int | None) -> None:
        with self._lock:
            self._stage, self._total, self._done, self._note = stage, total, 0, ""
            self._began = time.monotonic()
        if isinstance(self._mesh, PacketMesh):
            self._mesh.doing = stage

    def advance(self, party: str, stage: str, amount: int, note: str) -> None:
        with self._lock:
            self._done += amount
            self._note = note

    def end(self, party: str, stage: str, seconds: float) -> None:
        """Do nothing: the next stage, or the end of the run, will say more."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show a stage of work that is no program's."""
        self.begin(self._mesh.me, name, None)
        yield

    def progress(self, ended: str = "") -> Progress:
        waits, moved = "", (0, 0)
        told: list[Waiting] = []
        traffic: dict[str, Moved] = {}
        if isinstance(self._mesh, PacketMesh):
            now, moved = time.monotonic(), self._mesh.moved()
            traffic = {name: Moved(*one) for name, one in self._mesh.moved_by_peer().items()}
            # Shorter waits belong to work; a table full of them shows nothing.
            longest = [wait for wait in self._mesh.waits() if now - wait.since > self._every]
            if longest and not ended:
                waits = f"{longest[0].peer} ({longest[0].what}, {now - longest[0].since:.0f} s)"
            if not ended:
                me = self._mesh.me
                told = [Waiting(me, one.peer, one.what, now - one.since) for one in longest]
                told += [
                    Waiting(name, one.peer, one.what, one.seconds)
                    for name, status in self._mesh.status().items()
                    if status.link == "up"
                    for one in status.waits
                ]
        with self._lock:
            return Progress(
                self._mesh.me,
                self._stage,
                self._done,
                self._total,
                self._note,
                time.monotonic() - self._began,
                *moved,
                waits,
                ended,
                result=self.result,
                waits=tuple(told),
                traffic=traffic,
            )

    def close(self, ended: str) -> None:
        """Tell the last progress: "done", or the error."""
        self._stop.set()
        self._thread.join()
        self._tell(self.progress(ended))

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self._tell(self.progress())
