"""Services of several parties inside one process: real sockets and TLS, one store each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.organisations import NAMES
from tests.waiting import until
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.config.job_file import Job
from vertikal.node.models.job_models import JobModels
from vertikal.node.service import Service


class Trio:
    """The services, started and stopped one by one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.services: dict[str, Service] = {}
        self.said: dict[str, list[str]] = {}

    def __getitem__(self, name: str) -> Service:
        return self.services[name]

    def start(self, *names: str) -> None:
        for name in names:
            said = self.said.setdefault(name, [])
            service = Service(self.root / name / "party.toml", said.append)
            self.services[name] = service
            service.start()

    def connected(self) -> None:
        """Wait until everybody has heard everybody."""
        for name, service in self.services.items():
            others = [other for other in self.services if other != name]
            until(lambda s=service, o=others: set(o) <= set(s.gossip.beats), f"{name} hears all")

    def stop(self, *names: str) -> None:
        for name in names or tuple(self.services):
            self.services.pop(name).stop()

    def submit(self) -> JobRecord:
        job = Job.load(self.root / "lender" / "credit.toml")
        return self["lender"].decisions.submit("credit", job)

    def record(self, name: str, digest: str) -> JobRecord:
        """The job at this party, once it is there."""
        until(lambda: self[name].book.find(digest) is not None, f"{name} has the job", self.told)
        found = self[name].book.find(digest)
        assert found is not None
        return found

    def models(self, name: str) -> JobModels:
        """The shards in this party's store."""
        return JobModels(self[name].home)

    def approve(self, digest: str, *names: str) -> None:
        for name in names:
            self[name].decisions.approve(self.record(name, digest).id)

    def wait(self, name: str, digest: str, met: Callable[[JobRecord], Any], what: str) -> JobRecord:
        record = self.record(name, digest)
        until(lambda: met(record), f"{name}: {what}", self.told)
        return record

    def done(self, digest: str) -> None:
        for name in self.services:
            self.wait(name, digest, lambda record: record.done, "done")

    def told(self) -> str:
        return "\n".join(f"{name}: {line}" for name, lines in self.said.items() for line in lines)


@contextmanager
def trio(root: Path, names: Sequence[str] = NAMES) -> Iterator[Trio]:
    """All of them, connected."""
    world = Trio(root)
    try:
        world.start(*names)
        world.connected()
        yield world
    finally:
        world.stop()
