"""The workers of one party: requests to them, and another in the place of one that is lost.

The party's own process keeps a list of all that a worker was told to hold. A worker that dies, with
its node or alone, is replaced by one that is told the same again, bit by bit: rows of tables and
summed phases come from Ray's object store at this process's node (from its disk, where the store is
full), what a solver keeps is computed again. Requests that were under way are asked again.

So a request must rely on nothing that is changed before its answer is taken. And masked elements
that are computed again carry the pads of the first time: this process alone sends, and only
answers that it has taken, each once. What a lost worker computed has left the party never or
through this process; the pad of a block that was sent is not asked for again. Workers that send to
other parties themselves are asked once (`ask_once`), and whoever asks learns that one was lost.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.compute.device.choice import DeviceName
from vertikal.compute.workers import idle_workers
from vertikal.compute.workers.cluster import Workers, connect
from vertikal.compute.workers.row_layout import RowLayout
from vertikal.compute.workers.shard_worker import ShardWorker
from vertikal.errors import InputError, LinkLost, WorkerLost
from vertikal.side_by_side import cores
from vertikal.version import __version__

Array: TypeAlias = npt.NDArray[Any]

UNCONFIRMED = 16
"""Changes at one worker that are under way at a time."""

ANSWERS = 5.0
"""Seconds within which a worker that another run has left must answer to be used again."""

SHARED = 1 << 16
"""Bytes from which on an argument for all workers is stored once."""


@dataclass(frozen=True)
class Change:
    """A request that changes what a worker holds under ``name``."""

    name: str
    method: str
    arguments: tuple[Any, ...]


@dataclass
class _Worker:
    actor: Any = None
    host: str = ""
    begun: int = 0  # actors so far
    told: list[Change] = field(default_factory=list)
    unconfirmed: deque[Any] = field(default_factory=deque)


class WorkerGroup:
    """All workers of one party; they are started by the first request."""

    def __init__(
        self,
        workers: Workers,
        party: str,
        device: DeviceName = "cpu",
        tell: Callable[[str], None] = lambda note: None,
        log: Callable[[str], None] = lambda note: None,
    ) -> None:
        if device == "cuda" and not workers.gpus:
            workers = msgspec.structs.replace(workers, gpus=1)
        self.workers, self.party = workers, party
        self.tell = tell
        """Tells of workers where progress is shown; the step of a run that is under way sets it."""
        self._log = log
        self.lost = 0
        """Workers that were replaced."""
        self._device: DeviceName = "cuda" if workers.gpus else "cpu" if device == "auto" else device
        self._ray: Any = None
        self._members = [_Worker() for _ in range(workers.count)]
        self._names = 0
        self._unused: list[str] = []
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._members)

    def layout(self, rows: int) -> RowLayout:
        """Lay out so many rows over the workers."""
        return RowLayout(rows, len(self))

    def name(self, kind: str) -> str:
        """Make a name for something that workers hold."""
        with self._lock:
            self._names += 1
            return f"{kind} {self._names}"

    def title(self, number: int) -> str:
        """The name of a worker in messages."""
        host = self._members[number].host
        return f"worker {number + 1} of {len(self)} of {self.party}" + (
            f" on {host}" if host else ""
        )

    def store(self, value: Any) -> Any:
        """Put something into the object store of this process's node, for several requests."""
        return self._cluster().put(value)

    def shared(self, value: Array) -> Any:
        """Store what goes to all workers, if it is large."""
        return self.store(value) if value.nbytes > SHARED and len(self) > 1 else value

    def change(self, number: int, name: str, method: str, *arguments: Any) -> None:
        """Tell a worker to hold something under ``name``; errors are raised by a later request."""
        change = Change(name, method, arguments)
        with self._lock:
            self._clear()
            member = self._started(number)
            # Noted before it is sent: a worker that is replaced meanwhile is told of it, too.
            member.told.append(change)
            member.unconfirmed.append(self._send(member, change))
            if len(member.unconfirmed) > UNCONFIRMED:
                self._confirm(number, UNCONFIRMED // 2)

    def has_changed(self, pending: Pending, name: str, method: str, *arguments: Any) -> None:
        """Note that the worker of a request holds something under ``name`` since its answer.

        A worker that has taken its place meanwhile is told.
        """
        with self._lock:
            member = self._members[pending.number]
            if pending.reference[1] != member.begun:
                self.change(pending.number, name, method, *arguments)
            elif self.workers.retries:
                member.told.append(Change(name, method, arguments))

    def change_all(self, name: str, method: str, *arguments: Any) -> None:
        """Tell all workers to hold the same thing."""
        for number in range(len(self)):
            self.change(number, name, method, *arguments)

    def ask(self, number: int, method: str, *arguments: Any) -> Pending:
        """Begin a request that changes nothing."""
        with self._lock:
            member = self._started(number)
            return Pending(
                self, number, Change("", method, arguments), self._begin(member, method, arguments)
            )

    def ask_once(self, number: int, method: str, *arguments: Any) -> Pending:
        """Begin a request that no other worker may do again: its answer is then LinkLost."""
        pending = self.ask(number, method, *arguments)
        pending.once = True
        return pending

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """Ask all workers the same, side by side; returns their answers in order."""
        return answers([self.ask(number, method, *arguments) for number in range(len(self))])

    def forget(self, *names: str) -> None:
        """Let workers let go of these things, with their next change."""
        # Called by the garbage collector, too: nothing waits here.
        self._unused.extend(names)

    def let_go(self) -> None:
        """Let workers let go of what is to be forgotten now."""
        with self._lock:
            self._clear()

    def close(self) -> None:
        """End the workers, or leave them to the next run on this machine."""
        with self._lock:
            for member in self._members:
                if member.actor is not None and self._ray.is_initialized():
                    if self.workers.address is None:
                        member.actor.close.remote()
                        idle_workers.leave(self._ray, self._kind, member.actor)
                    else:
                        self._ray.kill(member.actor)
                member.actor, member.told = None, []
                member.unconfirmed.clear()

    def actors(self) -> list[Any]:
        """Return Ray's handles of the workers, which are started if they are not yet."""
        with self._lock:
            return [self._started(number).actor for number in range(len(self))]

    def answer(self, pending: Pending) -> Any:
        """Wait for an answer; whoever is lost meanwhile is replaced, and asked again."""
        number = pending.number
        while True:
            with self._lock:
                self._confirm(number, 0)
                member = self._members[number]
                reference, begun = pending.reference
                if begun != member.begun and pending.once:
                    raise self._lost_with(pending)
                if begun != member.begun:
                    # It was asked before the worker was replaced.
                    change = pending.change
                    pending.reference = self._begin(member, change.method, change.arguments)
                    reference, begun = pending.reference
            try:
                return self._take(reference)
            except self._losses() as error:
                self._put_another(number, begun, error)
                if pending.once:
                    raise self._lost_with(pending) from None

    def _lost_with(self, pending: Pending) -> LinkLost:
        return LinkLost(f"{self.title(pending.number)} was lost, and its links with it")

    def _cluster(self) -> Any:
        with self._lock:
            if self._ray is None:
                self._ray = connect(self.workers)
            return self._ray

    def _losses(self) -> tuple[type[Exception], ...]:
        errors = self._cluster().exceptions
        return (
            errors.RayActorError,
            errors.NodeDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
            errors.WorkerCrashedError,
            errors.GetTimeoutError,
        )

    def _take(self, reference: Any) -> Any:
        ray = self._cluster()
        try:
            # `ray.get` alone looks for an answer at another node once a second.
            ray.wait([reference], timeout=self.workers.patience, fetch_local=True)
            return ray.get(reference, timeout=self.workers.patience)
        except ray.exceptions.OutOfMemoryError:
            raise
        except ray.exceptions.RayTaskError as error:
            # The worker's own error, as it would have been raised here.
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, Exception) else error) from None

    def _send(self, member: _Worker, change: Change) -> Any:
        return getattr(member.actor, change.method).remote(change.name, *change.arguments)

    def _begin(self, member: _Worker, method: str, arguments: tuple[Any, ...]) -> tuple[Any, int]:
        return getattr(member.actor, method).remote(*arguments), member.begun

    def _clear(self) -> None:
        names, self._unused = self._unused, []
        if not names:
            return
        gone = set(names)
        for member in self._members:
            member.told = [one for one in member.told if one.name not in gone]
            if member.actor is not None:
                member.unconfirmed.append(member.actor.forget.remote(names))

    def _confirm(self, number: int, left: int) -> None:
        """Wait until at most so many changes at a worker are under way."""
        member = self._members[number]
        while len(member.unconfirmed) > left:
            begun = member.begun
            try:
                self._take(member.unconfirmed[0])
                member.unconfirmed.popleft()
            except self._losses() as error:
                self._put_another(number, begun, error)

    def _started(self, number: int) -> _Worker:
        member = self._members[number]
        if member.actor is None:
            first = not any(one.begun for one in self._members)
            for one in range(len(self)) if first else (number,):
                self._launch(one)
            for one in range(len(self)) if first else (number,):
                try:
                    self._greet(one)
                except self._losses() as error:
                    self._put_another(one, self._members[one].begun, error)
            self.say(self._whereabouts())
        return member

    @property
    def _kind(self) -> object:
        """All that a worker is made with."""
        return self._device, self.workers.threads(cores()), self.workers.options()

    def _left(self) -> Any | None:
        """Return a worker that another run has left and that answers, if there is one."""
        ray = self._cluster()
        while self.workers.address is None:
            actor = idle_workers.take(ray, self._kind)
            if actor is None:
                return None
            try:
                ray.get(actor.hello.remote(), timeout=ANSWERS)
                return actor
            except (*self._losses(), ray.exceptions.RaySystemError):
                ray.kill(actor)
        return None

    def _launch(self, number: int) -> None:
        """Begin to start a worker."""
        ray, workers, member = self._cluster(), self.workers, self._members[number]
        made = ray.remote(ShardWorker).options(
            **workers.options(), max_restarts=0, scheduling_strategy="SPREAD"
        )
        member.begun += 1
        member.unconfirmed.clear()
        member.actor = self._left() or made.remote(self._device, workers.threads(cores()))

    def _greet(self, number: int) -> None:
        """Wait until a worker runs, and see that it does so by the same version."""
        ray, workers, member = self._cluster(), self.workers, self._members[number]
        try:
            said = ray.get(member.actor.hello.remote(), timeout=workers.patience)
        except ray.exceptions.GetTimeoutError:
            raise WorkerLost(
                f"{self.title(number)} has found no place in the cluster for "
                f"{workers.patience:.0f} s; it wants {workers.options()}, free are {_free(ray)}"
            ) from None
        if said["version"] != __version__:
            raise InputError.of(
                f"{self.title(number)}: version of vertikal", __version__, said["version"]
            )
        member.host = said["host"]

    def say(self, words: str) -> None:
        """Write something about workers to the log, and to where progress is shown."""
        self._log(words)
        self.tell(words)

    def _whereabouts(self) -> str:
        hosts = {member.host for member in self._members}
        return f"{len(self)} workers on {', '.join(sorted(hosts))}"

    def _put_another(self, number: int, begun: int, error: Exception) -> None:
        """Start another worker in the place of a lost one, and tell it all that it is to hold."""
        with self._lock:
            member = self._members[number]
            if member.begun != begun:
                return  # another request found it lost before
            lost = self.title(number)
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            if begun > self.workers.retries:
                raise WorkerLost(
                    f"{lost} was lost, and so were {begun - 1} before it in its place ({why})"
                ) from error
            self.lost += 1
            self.say(f"{lost} was lost ({why}); its rows are done again")
            began = time.monotonic()
            if member.actor is not None:
                self._cluster().kill(member.actor)
            self._launch(number)
            try:
                self._greet(number)
            except self._losses() as again:
                self._put_another(number, member.begun, again)
                return
            member.unconfirmed.extend(self._send(member, change) for change in member.told)
        self._confirm(number, 0)
        self.say(f"{self.title(number)} has its rows after {time.monotonic() - began:.1f} s")


class Pending:
    """A request that is under way."""

    def __init__(
        self, group: WorkerGroup, number: int, change: Change, reference: tuple[Any, int]
    ) -> None:
        self._group = group
        self.number, self.change, self.reference = number, change, reference
        self.once = False

    def answer(self) -> Any:
        """Wait for the answer."""
        return self._group.answer(self)


def answers(pending: Sequence[Pending]) -> list[Any]:
    """Wait for the answers to several requests."""
    return [one.answer() for one in pending]


def summed(parts: Sequence[Array]) -> Array:
    """Add up what workers answered, in their order."""
    total = np.array(parts[0])
    for part in parts[1:]:
        total += part
    return total


def _free(ray: Any) -> dict[str, float]:
    free = ray.available_resources()
    return {name: free[name] for name in ("CPU", "GPU", "memory") if name in free}
