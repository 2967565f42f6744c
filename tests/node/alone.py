"""One party's service that is not started: its messages come by hand, its threads do not run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vertikal.node.approval import proposals
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.proposals import SignedBytes
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.config.job_file import Job
from vertikal.node.service import Service
from vertikal.secure.keys.credentials import Credentials
from vertikal.secure.keys.identity import Identity


@contextmanager
def alone(root: Path, name: str = "bank") -> Iterator[tuple[Service, list[str]]]:
    """The service, and what it said."""
    said: list[str] = []
    service = Service(root / name / "party.toml", said.append)
    try:
        yield service, said
    finally:
        service.stop()


def keys_of(root: Path, name: str) -> Credentials:
    folder = root / name
    identity = Identity.load(folder / f"{name}.key", folder / f"{name}.crt")
    return FederationFile.load(folder / "federation.toml").credentials(identity)


def proposal(root: Path, name: str = "credit") -> SignedBytes:
    """The lender's job, signed by it."""
    job = Job.load(root / "lender" / "credit.toml")
    return proposals.propose(name, job, "lender", 60, keys_of(root, "lender"))


def kept(service: Service, signed: SignedBytes) -> JobRecord:
    """A proposal on the service's disk that it has not decided about."""
    record = service.book.add(signed, proposals.decode_proposal(signed))
    service.book.save(record)
    return record
