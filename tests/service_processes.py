"""Services as processes of their own, and their owners' commands."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.organisations import NAMES
from tests.waiting import SECONDS, until
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.cli import main
from vertikal.node.control import ask
from vertikal.node.models.store import ModelStore

COMMAND = (sys.executable, "-m", "vertikal")
KILLER = Path(__file__).with_name("killed.py")


class ServiceProcesses:
    """Services as processes; all of them end with the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.running: dict[str, subprocess.Popen[str]] = {}

    def start(self, *names: str, killed: str = "") -> None:
        """Start these services; ``killed`` is where they kill themselves (`killed.py`)."""
        for name, log in [(name, self._spawn(name, killed)) for name in names]:
            until(partial(self._ready, name, log), f"{name} is ready")

    def _spawn(self, name: str, killed: str) -> Path:
        log = self.root / name / f"service-{time.monotonic_ns()}.log"
        command = [sys.executable, str(KILLER), killed] if killed else list(COMMAND)
        with log.open("w") as file:
            self.running[name] = subprocess.Popen(
                [*command, "party", "start", "party.toml"],
                cwd=self.root / name,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        return log

    def _ready(self, name: str, log: Path) -> bool:
        code = self.running[name].poll()
        assert code is None, f"{name} ended with {code}: {log.read_text()}"
        return " is ready" in log.read_text()

    def said(self, name: str) -> str:
        """All that the services of this party have written."""
        logs = sorted((self.root / name).glob("service-*.log"))
        return "\n".join(log.read_text() for log in logs)

    def tell(self, name: str, *arguments: str, code: int = 0) -> str:
        """A command of this party's owner; its output."""
        # In this process: a new one would load for longer than the command takes.
        with contextlib.chdir(self.root / name):
            done = CliRunner().invoke(main, arguments)
        assert done.exit_code == code, f"{name}: {arguments}\n{done.output}"
        return done.output

    def jobs(self, name: str) -> list[dict[str, Any]]:
        return list(ask(self.root / name / "store", "list"))

    def job(self, name: str, number: int = 1) -> dict[str, Any]:
        """The first, second, … job that this party heard of; empty as long as it has not."""
        return next(iter(self.jobs(name)[number - 1 :]), {})

    def wait(self, name: str, number: int, what: str, met: Callable[[dict[str, Any]], bool]) -> Any:
        until(lambda: met(self.job(name, number)), f"{name}: {what}", self.told)
        return self.job(name, number)

    def done(self, number: int = 1, names: Sequence[str] = NAMES) -> None:
        """Wait until this job is done at everybody."""
        for name in names:
            self.wait(name, number, "done", lambda one: bool(one) and one["done"])

    def connected(self) -> None:
        """Wait until the lender has heard all others."""
        store = self.root / "lender" / "store"
        until(lambda: not any(one["faults"] for one in ask(store, "peers")), "all are connected")

    def ended(self, name: str, seconds: float = SECONDS) -> int:
        """Wait until this service has ended by itself."""
        return self.running[name].wait(seconds)

    def told(self) -> str:
        return "\n".join(f"--- {name}\n{self.said(name)}" for name in self.running)

    def model(self, name: str) -> Any:
        """The newest version of the party's shard."""
        store = ModelStore(self.root / name / "store" / "models")
        algorithm = algorithm_named(store.show("credit").facts["algorithm"])
        return store.load("credit", algorithm).shard

    def resident(self, name: str) -> int:
        """Bytes of memory that a service has."""
        pages = Path(f"/proc/{self.running[name].pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        for one in self.running.values():
            if one.poll() is None:
                one.terminate()
        for one in self.running.values():
            try:
                one.wait(20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
