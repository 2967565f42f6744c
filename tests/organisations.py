"""Organisations on loopback: folders, keys, tables, party files, and their services.

Three have tables; a fourth, the notary, has none, where a test wants a dealer without data.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.networks import free_port
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.demo.credit import credit_population
from vertikal.node.config.federation_file import entry_of
from vertikal.node.control import ask
from vertikal.node.models.store import ModelStore
from vertikal.secure.keys.identity import Identity

NAMES = ("lender", "bank", "shop")
WITH_NOTARY = (*NAMES, "notary")
COMMAND = (sys.executable, "-m", "vertikal")
KILLER = Path(__file__).with_name("killed.py")
SECONDS = 90.0
"""The most that anything here is waited for."""

PARTY = """
name = "{name}"
key = "{name}.key"
certificate = "{name}.crt"
federation = "federation.toml"
store = "store"
{tables}
[policy]
who = ["lender"]
disclosures = {disclosures}
least_rows = 20
most_passes = 64
most_value_bits = 28
experiments = true
{policy}
"""

JOB = """
timeout = {timeout}
secret_seed = 7
{top}
[settings]
{components}
scale = "standard"
{settings}
[parties.lender]
table = "people"
label = "default"
[parties.bank]
table = "people"
{bank}
[parties.shop]
table = "people"
{rest}
"""

TABLE = """
[tables.people]
source = "people.csv"
id = "customer"
features = {features}
labels = {labels}
"""

DEGRADED = "degraded_predictions = true\n"

RULE = """
[[policy.standing]]
who = ["lender"]
algorithms = ["fdskl", "avfkam", "admm"]
disclosures = ["open", "values", "sealed"]
per_day = 100
"""


def lay_out(
    root: Path,
    rows: int = 240,
    policy: str | Mapping[str, str] = "",
    disclosures: Sequence[str] = ("open", "values"),
    listening: Sequence[str] = ("lender",),
    names: Sequence[str] = NAMES,
    labelled: Sequence[str] = ("lender",),
) -> None:
    """A folder per party, with all that its service needs; ``labelled`` have the labels."""
    people = credit_population(rows + 60, 0)
    draw = np.random.default_rng(1)
    everybody = np.arange(rows + 60)
    entries = []
    for place, name in enumerate(names):
        folder = root / name
        folder.mkdir(parents=True)
        identity = Identity.create(name)
        identity.save(folder / f"{name}.key", folder / f"{name}.crt")
        listens = f"127.0.0.1:{free_port()}" if name in listening else None
        entries.append(entry_of(identity, listens))
        tables = ""
        if name in people.columns:
            # Everybody lacks twenty people that the others have, and has its own order.
            own = np.delete(everybody, everybody[rows + 20 * place : rows + 20 * (place + 1)])
            label = name in labelled
            write_table(folder / "people.csv", people, name, draw.permutation(own), label=label)
            tables = TABLE.format(
                features=json.dumps(people.columns[name]),
                labels='["default"]' if label else "[]",
            )
        rules = policy if isinstance(policy, str) else policy.get(name, "")
        (folder / "party.toml").write_text(
            PARTY.format(
                name=name,
                tables=tables,
                disclosures=json.dumps(list(disclosures)),
                policy=rules,
            )
        )
    for name in names:
        (root / name / "federation.toml").write_text("\n".join(entries))
    write_job(root)


def write_table(path: Path, people: Any, name: str, rows: Any, *, label: bool) -> None:
    titles = ["customer", *people.columns[name]]
    columns = [rows + 1000, *people.X[rows][:, people.numbers()[name]].T]
    if label:
        titles.append("default")
        columns.append(people.y[rows])
    np.savetxt(
        path,
        np.column_stack(columns),
        ["%d", *["%.10g"] * (len(columns) - 1)],
        ",",
        header=",".join(titles),
        comments="",
    )


def write_job(
    root: Path,
    timeout: float = 60,
    directions: int | None = 64,
    settings: str = "",
    top: str = "",
    bank: str = "",
    rest: str = "",
) -> None:
    """The lender's job; ``bank`` is what else the bank's part says, ``rest`` what follows it.

    Without ``directions`` it says nothing of their number, as a linear model must.
    """
    text = JOB.format(
        timeout=timeout,
        components="" if directions is None else f"n_components = {directions}",
        settings=settings,
        top=top,
        bank=bank,
        rest=rest,
    )
    (root / "lender" / "credit.toml").write_text(text)


class Parties:
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
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.root / name,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{name}: {arguments}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def jobs(self, name: str) -> list[dict[str, Any]]:
        return list(ask(self.root / name / "store", "list"))

    def job(self, name: str, number: int = 1) -> dict[str, Any]:
        return next((one for one in self.jobs(name) if one["number"] == number), {})

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


def until(met: Callable[[], Any], what: str, told: Callable[[], str] = str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + SECONDS
    while not met():
        assert time.monotonic() < end, f"not within {SECONDS} s: {what}\n{told()}"
        time.sleep(0.05)
