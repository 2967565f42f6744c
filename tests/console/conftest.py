"""A console around a service that is not started, with a job of the lender that waits."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.console.browser import ORIGIN, Browser
from tests.node.alone import alone, kept, proposal
from tests.organisations import RULE, lay_out, write_job
from vertikal.console import party_view
from vertikal.console.application import Console
from vertikal.console.party_view import PartyView
from vertikal.console.sessions import APPROVER, VIEWER, Sessions
from vertikal.node.control import ask
from vertikal.node.models.store import ModelStore


@dataclass
class Direct:
    """The way to a service in this process, by the functions that its socket calls."""

    service: Any
    file: Path

    @property
    def name(self) -> str:
        return self.service.me

    @property
    def store(self) -> Path:
        return self.service.home.store

    @property
    def models(self) -> ModelStore:
        return ModelStore(self.store / "models")

    def ask(self, command: str, **arguments: Any) -> Any:
        if self.service is None:
            return ask(self.file.parent / "store", command, **arguments)
        return self.service.answer({"command": command, **arguments})


@dataclass
class World:
    """A console, its service, and the job that waits."""

    console: Console
    service: Any
    said: list[str]
    root: Path
    record: Any
    noted: list[Any]

    @property
    def digest(self) -> str:
        return self.record.digest

    def browser(self, role: str = APPROVER) -> Browser:
        return Browser(self.console.admitting()).enter(self.console.sessions, role)

    def stranger(self) -> Browser:
        return Browser(self.console.admitting())


@pytest.fixture(scope="session")
def organisations(tmp_path_factory):
    """The folders of three parties, which tests copy."""
    root = tmp_path_factory.mktemp("organisations")
    lay_out(root, rows=60, policy={"bank": RULE.replace('"fdskl", ', "")})
    write_job(root, directions=16, settings='disclosure = "values"')
    return root


@pytest.fixture
def world(organisations, tmp_path, monkeypatch):
    # Pages of a test see at once what the test has changed.
    monkeypatch.setattr(party_view, "FRESH", 0.0)
    shutil.copytree(organisations, tmp_path / "all")
    root = tmp_path / "all"
    with alone(root) as (service, said):
        record = kept(service, proposal(root))
        noted: list[Any] = []
        console = Console(
            PartyView(Direct(service, root / "bank" / "party.toml")),
            Sessions(tmp_path / "sessions"),
            (ORIGIN, "http://localhost:8601"),
            note=lambda event, **facts: noted.append((event, facts)),
        )
        yield World(console, service, said, root, record, noted)


@pytest.fixture
def owner(world):
    return world.browser()


@pytest.fixture
def viewer(world):
    return world.browser(VIEWER)
