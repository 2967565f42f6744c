"""A federation on this machine: lender, bank and shop as services, a model, and a job that waits.

All of it lies in one folder; nothing is sent anywhere else. The owners are the visitor, who opens
the console of each party.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
import numpy as np

from vertikal.demo.credit import LABEL_PARTY, credit_population
from vertikal.errors import InputError
from vertikal.node.config.federation_file import entry_of
from vertikal.node.config.job_file import Job
from vertikal.node.control import ask
from vertikal.secure.keys.identity import Identity

NAMES = ("lender", "bank", "shop")
FIRST, WAITING = "credit", "credit-hidden"
"""Names of the job that is approved by rule, and of the one that waits for the bank's owner."""
PATIENCE = 120.0
"""Seconds to wait for services to start and to find one another."""
_GRACE = 15.0
_PARTY = """\
name = "{name}"
key = "{name}.key"
certificate = "{name}.crt"
federation = "federation.toml"
store = "store"

[tables.people]
source = "people.csv"
id = "customer"
features = {features}
{labels}
[policy]
who = ["lender"]
disclosures = ["open", "values"]
least_rows = 100
predictions_per_day = 5000

# Jobs of this kind are approved without asking; all others wait for the owner.
[[policy.standing]]
who = ["lender"]
algorithms = ["fdskl"]
disclosures = {approved}
per_day = 20

[console]
listen = "127.0.0.1:0"
"""
_JOB = """\
[settings]
n_components = 256
scale = "standard"
disclosure = "{level}"

[parties.lender]
table = "people"
label = "default"

[parties.bank]
table = "people"

[parties.shop]
table = "people"

[evaluation]
holdout = 0.25
contributions = true
{rest}
"""


def lay_out(folder: Path, rows: int, seed: int) -> None:
    """Write a folder for each party: keys, table, party file and the lender's jobs."""
    people = credit_population(rows, seed)
    draw = np.random.default_rng(seed)
    entries = []
    for name in NAMES:
        own = folder / name
        own.mkdir(parents=True)
        identity = Identity.create(name)
        identity.save(own / f"{name}.key", own / f"{name}.crt")
        entries.append(entry_of(identity, f"127.0.0.1:{_port()}" if name == LABEL_PARTY else None))
        # Each party lacks some people whom the others have, and has its own order.
        known = draw.permutation(rows)[: rows - rows // 20]
        titles, columns = ["customer", *people.columns[name]], [known + 10_000]
        columns += list(people.X[known][:, people.numbers()[name]].T)
        if name == LABEL_PARTY:
            titles, columns = [*titles, "default"], [*columns, people.y[known]]
        formats = ["%d", *["%.10g"] * (len(columns) - 1)]
        head = ",".join(titles)
        np.savetxt(
            own / "people.csv", np.column_stack(columns), formats, ",", header=head, comments=""
        )
        (own / "party.toml").write_text(
            _PARTY.format(
                name=name,
                features=json.dumps(people.columns[name]),
                labels='labels = ["default"]\n' if name == LABEL_PARTY else "",
                approved='["open"]' if name == "bank" else '["open", "values"]',
            )
        )
    for name in NAMES:
        (folder / name / "federation.toml").write_text("\n".join(entries))
    jobs = folder / LABEL_PARTY
    (jobs / f"{FIRST}.toml").write_text(_JOB.format(level="open", rest="columns = true"))
    (jobs / f"{WAITING}.toml").write_text(_JOB.format(level="values", rest=""))


class DemoFederation:
    """The services of the parties in a folder that `lay_out` has written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}

    def start(self) -> None:
        """Start all services, and wait until they are connected."""
        for name in NAMES:
            log = (self.folder / name / "service.log").open("wb")
            process = subprocess.Popen(
                [sys.executable, "-m", "vertikal", "party", "start", "party.toml"],
                cwd=self.folder / name,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                # Ctrl-C reaches this process only, which then ends the others in good order.
                start_new_session=True,
            )
            self._running[name] = process, log
        for name in NAMES:
            self._until(name, lambda name=name: self._connected(name), "be connected")  # type: ignore[misc]

    def submit(self, job: str) -> str:
        """Have the lender submit one of its jobs; return its digest."""
        path = self.folder / LABEL_PARTY / f"{job}.toml"
        content = msgspec.to_builtins(Job.load(path))
        return str(ask(self._store(LABEL_PARTY), "submit", name=job, job=content)["digest"])

    def link(self, name: str, *, viewer: bool = False) -> str:
        """Get a one-time link to the console of a party."""
        self._until(
            name,
            (self._store(name) / "console" / "address.json").exists,
            "serve its console",
        )
        command = [sys.executable, "-m", "vertikal", "console", "--json", "--no-open"]
        done = subprocess.run(
            [*command, *(["--viewer"] if viewer else [])],
            cwd=self.folder / name,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        if done.returncode:
            raise InputError(f"console of {name}: {done.stderr.strip()}")
        return str(json.loads(done.stdout)["link"])

    def processes(self, name: str) -> tuple[int, int]:
        """Tell the ids of a party's service and of its console, which is a child of it."""
        service = self._running[name][0].pid
        (console,) = map(int, Path(f"/proc/{service}/task/{service}/children").read_text().split())
        return service, console

    def stop(self) -> None:
        """End all services in good order."""
        for process, _ in self._running.values():
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + _GRACE
        for process, log in self._running.values():
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()

    def _store(self, name: str) -> Path:
        return self.folder / name / "store"

    def _connected(self, name: str) -> bool:
        with suppress(InputError):
            return not any(one["faults"] for one in ask(self._store(name), "peers"))
        return False

    def _until(self, name: str, met: Callable[[], bool], what: str) -> None:
        began = time.monotonic()
        while not met():
            process, _ = self._running[name]
            last = (self.folder / name / "service.log").read_text(errors="replace")[-400:]
            if process.poll() is not None:
                raise InputError(f"the service of {name} has ended: {last.strip()}")
            if time.monotonic() - began > PATIENCE:
                raise InputError(
                    f"the service of {name} did not {what} within {PATIENCE:g} s: {last.strip()}"
                )
            time.sleep(0.2)


def _port() -> int:
    """Find a port that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
