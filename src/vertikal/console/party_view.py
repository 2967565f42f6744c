"""One party as its console sees it: what its service answers, and what lies in its store."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from vertikal.console.audit_lines import AuditLines
from vertikal.console.recent import Recent
from vertikal.errors import VertikalError
from vertikal.node.config.party_file import PartyFile
from vertikal.node.models.store import ModelStore
from vertikal.node.storage.account_summary import summarise_account
from vertikal.node.storage.audit_log import Line

FRESH = 0.8
"""Seconds for which an answer of the service serves other pages too."""


class ServiceConnection(Protocol):
    """The way to one party, as `vertikal.client.connection.Connection` is one."""

    @property
    def file(self) -> Path: ...

    @property
    def name(self) -> str: ...

    @property
    def store(self) -> Path: ...

    @property
    def models(self) -> ModelStore: ...

    def ask(self, command: str, **arguments: Any) -> Any: ...


@dataclass(frozen=True)
class PartyView:
    """A party, asked at most about once a second for the same thing however many pages look."""

    connection: ServiceConnection
    _recent: Recent = field(default_factory=lambda: Recent(FRESH))
    _audit: AuditLines = field(default_factory=AuditLines)

    @property
    def name(self) -> str:
        return self.connection.name

    @property
    def party_file(self) -> PartyFile:
        return PartyFile.load(self.connection.file)

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, the newest first."""
        found = self._recent.get("list", lambda: self.connection.ask("list"))
        return list(reversed(found))

    def job(self, digest: str) -> dict[str, Any]:
        """One job with its description and its run."""
        found = self._recent.get(("show", digest), lambda: self.connection.ask("show", job=digest))
        return dict(found)

    def follow(self, digest: str) -> dict[str, Any]:
        """One job with what changes while it runs: its state, decisions and run."""
        found = self._recent.get(
            ("follow", digest), lambda: self.connection.ask("follow", job=digest)
        )
        return dict(found)

    def peers(self) -> list[dict[str, Any]]:
        return list(self._recent.get("peers", lambda: self.connection.ask("peers")))

    def health(self) -> dict[str, Any]:
        return dict(self._recent.get("health", lambda: self.connection.ask("health")))

    def account(self) -> dict[str, Any]:
        """The disclosure account and the privacy budget, as `vertikal audit account` has them."""
        return dict(
            self._recent.get(
                "account", lambda: summarise_account(self.connection.store, self.party_file)
            )
        )

    def audit(self) -> list[Line]:
        """All lines of the audit log; only new ones are read."""
        return self._audit.lines(self.connection.store / "audit.log")

    def audit_of(self, digest: str) -> list[Line]:
        """The lines of the audit log about one job."""
        return self._audit.lines_of(self.connection.store / "audit.log", digest)

    def disk(self) -> tuple[int, int]:
        """Bytes free, and all bytes, of the disk of the store."""
        usage = shutil.disk_usage(self.connection.store)
        return usage.free, usage.total

    def change(self, command: str, **arguments: Any) -> Any:
        """Have the service do something; what other pages know is old then."""
        try:
            return self.connection.ask(command, **arguments)
        finally:
            self._recent.forget()

    def model_of_job(self, digest: str) -> Any:
        """The newest shard of a job here; None if there is none."""
        try:
            return self.connection.models.newest_of_job(digest)
        except VertikalError:
            return None
