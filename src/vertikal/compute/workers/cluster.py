"""The Ray cluster of one party, and the resources that each of its workers declares there."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from queue import Queue
from typing import Annotated, Any

import msgspec

from vertikal.errors import InputError
from vertikal.parameters import Count, Parameters, Positive, read

Some = Annotated[float, msgspec.Meta(ge=0, le=4096)]

LAST_PORT = 65535
Port = Annotated[int, msgspec.Meta(ge=1, le=LAST_PORT)]

STARTING = 60.0
"""Seconds that a cluster waits for others of this machine to have started."""

_starting = threading.Lock()


class Workers(Parameters, frozen=True, kw_only=True, tag_field="name", tag="workers"):
    """Workers of one party: actors of Ray, each with a part of the rows."""

    count: Count = 2
    address: str | None = None
    """Address of a cluster that runs, or "auto"; None starts one on this machine."""
    cpus: Some | None = None
    """Cores that each declares, and threads that it uses; None: an even part of this machine."""
    gpus: Some = 0
    """GPUs that each declares, on which it then computes."""
    memory: Count | None = None
    """Bytes of memory that each declares; Ray starts it where they are free."""
    patience: Positive = 600.0
    """Seconds that a worker may take for one request, or to find a place, before it is given up."""
    retries: Annotated[int, msgspec.Meta(ge=0)] = 3
    """Times that the rows of one worker are done again by another."""
    direct: bool = False
    """Workers exchange masked phases with those of other parties that say the same, by links."""
    first_port: Port | None = None
    """Port at which the first worker is dialled, the second at the next; None: any that is free."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_port is not None and self.first_port + self.count - 1 > LAST_PORT:
            most = LAST_PORT - self.count + 1
            raise InputError.of(
                "first_port", f"at most {most} with {self.count} workers", self.first_port
            )

    def options(self) -> dict[str, Any]:
        """Return the resources in Ray's words.

        On a cluster of this machine alone cores are not counted: all parties of a simulation share
        them.
        """
        cpus = 0.0 if self.address is None else self.cpus if self.cpus is not None else 1.0
        found: dict[str, Any] = {"num_cpus": cpus, "num_gpus": self.gpus}
        return found if self.memory is None else found | {"memory": self.memory}

    def threads(self, cores: int) -> int:
        """Return the threads of one worker, on a machine with so many cores."""
        if self.cpus is not None:
            return max(1, int(self.cpus))
        return max(1, cores // self.count) if self.address is None else 1


def read_workers(value: object) -> Workers | None:
    """Return the workers that a parameter names: a count, a record, or None for threads alone."""
    if value is None or isinstance(value, Workers):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return Workers(count=value)
    if isinstance(value, dict):
        found: Workers = read("workers", value, Workers)
        return found
    raise InputError.of("workers", "a number of workers, Workers(...) or None", value)


def connect(workers: Workers) -> Any:
    """Return Ray, connected to the cluster; a process has one connection, which stays open."""
    if find_spec("ray") is None:
        raise InputError('workers need Ray, which is not installed; pip install "vertikal[ray]"')
    # Ray would tell its makers of each cluster.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A busy machine may take longer than the thirty seconds that Ray gives a node to start.
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
    import ray

    with _starting:
        if not ray.is_initialized():
            _start(ray, workers.address)
    return ray


def _start(ray: Any, address: str | None) -> None:
    """Connect to a cluster, or start one, in a thread that stays.

    The processes that Ray starts end with the thread that started them, and threads of parties end
    with each run.
    """
    ended: Queue[Exception | None] = Queue()

    def stay() -> None:
        try:
            with alone_on_this_machine() if address is None else nullcontext():
                ray.init(
                    address=address or "local",
                    include_dashboard=False if address is None else None,
                    log_to_driver=False,
                    logging_level="ERROR",
                )
        except Exception as error:
            ended.put(error)
            return
        ended.put(None)
        threading.Event().wait()

    threading.Thread(target=stay, name="Ray", daemon=True).start()
    error = ended.get()
    if error is not None:
        raise InputError(f"workers: no Ray cluster at {address!r}: {error}") from error


@contextmanager
def alone_on_this_machine() -> Iterator[None]:
    """Wait until no other process of this user starts a cluster here.

    Of two that start at once, one may wait for ports of its own that the other has taken. Whoever
    waits too long starts all the same.
    """
    path = Path(tempfile.gettempdir()) / f"vertikal-ray-{os.getuid()}.lock"
    try:
        number = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except OSError:  # somebody else's file
        yield
        return
    try:
        end = time.monotonic() + STARTING
        while time.monotonic() < end:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
        yield
    finally:
        os.close(number)
