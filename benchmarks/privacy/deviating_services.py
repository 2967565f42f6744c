"""Attacks of members that do not follow the program on the running services of others.

Three services in one process, with real sockets, TLS and stores, under the default policy but for
who may ask. Only the messages of the attacker are changed; what the others do is what they do.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np

from benchmarks.scale.service import free_port
from vertikal.demo.credit import credit_population
from vertikal.errors import VertikalError
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.config.federation_file import entry_of
from vertikal.node.config.job_file import Job
from vertikal.node.links.standing_links import HEAD, StandingLinks, short_name
from vertikal.node.service import Service
from vertikal.node.storage.audit_log import read
from vertikal.party.party import Party
from vertikal.secure.keys.identity import Identity
from vertikal.secure.psi.intersection import Intersection

NAMES = ("lender", "bank", "shop")
WAIT = 120.0

COMMON, ONLY_AT_BANK = 200, 37
"""People that all have, and people that the bank alone has."""
SHARED_BY_OTHERS = 523
"""People that bank and shop have; the lender has ``COMMON`` of them."""
INVENTED = 10_000
QUESTIONS = 130
"""Questions about one person, more than there are directions."""
DIRECTIONS = 128
UNKNOWN_KIND = 9
CUTTING = 6.0
"""Seconds in which a member sends parcels of an unknown kind."""

PARTY = """
name = "{name}"
key = "{name}.key"
certificate = "{name}.crt"
federation = "federation.toml"
store = "store"
[tables.people]
source = "people.csv"
id = "customer"
features = {features}
labels = {labels}
[policy]
who = ["lender"]
[[policy.standing]]
who = ["lender"]
algorithms = ["fdskl"]
disclosures = ["values"]
per_day = 100
"""
JOB = """
timeout = 60
[settings]
scale = "standard"
{settings}
[parties.lender]
table = "people"
label = "default"
[parties.bank]
table = "people"
[parties.shop]
table = "people"
"""


SMALL = f'n_components = {DIRECTIONS}\ndisclosure = "values"'
"""Settings of a job where their defaults do not matter."""
DEFAULT = 'disclosure = "values"'
FEW_VALUES = 'disclosure = {name = "values", max_passes = 13}'
"""As few values of a row as a job on the generated columns takes, so that little is booked."""
MOST_JOBS = 20


class Federation:
    """The services of lender, bank and shop; the lender listens and relays."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said: dict[str, list[str]] = {name: [] for name in NAMES}
        self.services: dict[str, Service] = {}

    def __getitem__(self, name: str) -> Service:
        return self.services[name]

    def start(self) -> None:
        for name in NAMES:
            service = Service(self.root / name / "party.toml", self.said[name].append)
            self.services[name] = service
            service.start()
        for name in NAMES:
            others = {*NAMES} - {name}
            self.until(lambda o=others, n=name: o <= {*self[n].gossip.beats}, "all are connected")

    def stop(self) -> None:
        for service in self.services.values():
            service.stop()

    def until(self, met: Callable[[], Any], what: str) -> None:
        end = time.monotonic() + WAIT
        while not met():
            if time.monotonic() > end:
                said = json.dumps(self.said, indent=1)
                raise SystemExit(f"not within {WAIT:g} s: {what}\n{said}")
            time.sleep(0.02)

    def submit(self, settings: str = SMALL) -> JobRecord:
        path = self.root / "lender" / "credit.toml"
        path.write_text(JOB.format(settings=settings))
        return self["lender"].decisions.submit("credit", Job.load(path))

    def train(self, settings: str = SMALL) -> str:
        """Train by one job; return why it was ended, or nothing."""
        record = self.submit(settings)
        for name in NAMES:
            self.until(
                lambda n=name: record.final is not None or _done(self[n], record.digest),
                f"{name} has a model",
            )
        final = record.final
        return "" if final is None else f"{final.party}: {final.words}"

    def blamed(self, by: str) -> set[str]:
        """Members that this party's audit log says it refused something of."""
        log = read(self[by].home.store / "audit.log")
        return {str(line.facts.get("peer")) for line in log if line.event == "refused"}


def _done(service: Service, digest: str) -> bool:
    record = service.book.find(digest)
    return record is not None and record.done


@contextmanager
def federation(people: dict[str, range]) -> Iterator[Federation]:
    """Run services with these people, by number, at each party."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _lay_out(root, people)
        world = Federation(root)
        try:
            world.start()
            yield world
        finally:
            world.stop()


def _lay_out(root: Path, people: dict[str, range]) -> None:
    everybody = credit_population(max(one.stop for one in people.values()), 0)
    entries = []
    for name in NAMES:
        folder = root / name
        folder.mkdir()
        identity = Identity.create(name)
        identity.save(folder / f"{name}.key", folder / f"{name}.crt")
        entries.append(entry_of(identity, f"127.0.0.1:{free_port()}" if name == "lender" else None))
        rows = np.array(people[name])
        columns = [rows, *everybody.X[rows][:, everybody.numbers()[name]].T]
        titles = ["customer", *everybody.columns[name]]
        if name == "lender":
            columns, titles = [*columns, everybody.y[rows]], [*titles, "default"]
        table, form = np.column_stack(columns), ["%d", *["%.10g"] * (len(columns) - 1)]
        np.savetxt(folder / "people.csv", table, form, ",", header=",".join(titles), comments="")
        text = PARTY.format(
            name=name,
            features=json.dumps(everybody.columns[name]),
            labels='["default"]' if name == "lender" else "[]",
        )
        (folder / "party.toml").write_text(text)
    for name in NAMES:
        (root / name / "federation.toml").write_text("\n".join(entries))


def predictions() -> dict[str, Any]:
    """Mix people in one request, and ask often about one person."""
    bank = range(COMMON + ONLY_AT_BANK)
    with federation({"lender": range(COMMON), "bank": bank, "shop": range(COMMON)}) as world:
        world.train()
        mixed, words = _mixed(world)
        asked = 0
        refusal = ""
        try:
            for asked in range(QUESTIONS):  # noqa: B007 (how many were answered)
                world["lender"].predict("credit", (str(COMMON - 1),), None, None)
            asked = QUESTIONS
        except VertikalError as error:
            refusal = str(error)
    return {
        "people that the bank alone has": ONLY_AT_BANK,
        "scored although degraded predictions are off": mixed,
        "refusal of mixed people": words,
        f"questions about one person that were answered, of {QUESTIONS}": asked,
        "refusal of questions": refusal,
    }


def _mixed(world: Federation) -> tuple[int, str]:
    """Ask the bank for people that it alone has, and the shop for common ones in their places."""
    common = tuple(str(number) for number in range(ONLY_AT_BANK))
    wanted = tuple(str(COMMON + number) for number in range(ONLY_AT_BANK))
    original = Party.broadcast

    def broadcast(self: Party, payload: Any, group: Any, disclosure: Any) -> Any:
        if self.name == "lender" and group[-1] == "bank" and disclosure.name == "ids asked for":
            request = msgspec.msgpack.decode(np.asarray(payload).tobytes())
            request["ids"] = wanted
            payload = np.frombuffer(msgspec.msgpack.encode(request), np.uint8)
        return original(self, payload, group, disclosure)

    with mock.patch.object(Party, "broadcast", broadcast):
        try:
            scores = world["lender"].predict("credit", common, None, None)
        except VertikalError as error:
            return 0, str(error)
    return sum(score["status"] == "ok" for score in scores), ""


def equal_jobs_allowed() -> dict[str, Any]:
    """Submit the same job again until a party refuses it, whatever its parties approve by rule."""
    found: dict[str, Any] = {}
    for name, settings in (("of the defaults", DEFAULT), ("of 13 values a row", FEW_VALUES)):
        with federation({name: range(COMMON) for name in NAMES}) as world:
            jobs, end = 0, ""
            while jobs < MOST_JOBS and not end:
                end = world.train(settings)
                jobs += not end
        found[f"equal jobs {name} that were run, of {MOST_JOBS}"] = jobs
        found[f"refusal of jobs {name}"] = end
    return found


def invented_ids() -> dict[str, Any]:
    """Bring many invented ids to the alignment of a job that was approved for few rows."""
    others = range(SHARED_BY_OTHERS)
    found: list[int] = []
    join, spread = Party.intersection, Intersection.spread

    def intersection(self: Party, group: Any, ids: Any, *args: Any, **options: Any) -> Any:
        if self.name == "lender":
            ids = tuple(str(number).encode() for number in range(INVENTED))
        return join(self, group, ids, *args, **options)

    def spread_out(self: Intersection) -> Any:
        rows = spread(self)
        if self.leads:
            found.append(len(rows))
        return rows

    with (
        federation({"lender": range(COMMON), "bank": others, "shop": others}) as world,
        mock.patch.object(Party, "intersection", intersection),
        mock.patch.object(Intersection, "spread", spread_out),
    ):
        record = world.submit()
        world.until(lambda: record.final is not None or record.note, "the run ends")
        told = "" if record.final is None else f"{record.final.party}: {record.final.words}"
    return {
        "rows of the approved job": COMMON,
        "ids brought": INVENTED,
        "people that bank and shop share": SHARED_BY_OTHERS,
        "of these, learned by the lender": max(found, default=0),
        "end of the job": told or record.note,
    }


def unknown_parcels(*, checked: bool) -> dict[str, Any]:
    """Send another member parcels of an unknown kind through the relay.

    With ``checked=False`` the relay passes on what it does not know, as it did before.
    """
    original = StandingLinks._check_parcel

    def passed_on(self: StandingLinks, kind: int, raw: bytes, sender: str) -> None:
        if self.me != "lender":
            original(self, kind, raw, sender)

    old = mock.patch.object(StandingLinks, "_check_parcel", passed_on)
    people = {name: range(COMMON) for name in NAMES}
    with nullcontext() if checked else old, federation(people) as world:
        bad = HEAD.pack(UNKNOWN_KIND, bytes(8), short_name("bank"), short_name("shop")) + b"x"
        begun, up, looks = time.monotonic(), 0, 0
        while time.monotonic() - begun < CUTTING:
            link = world["bank"].links.links.get("lender")
            if link is not None:
                link.outbox.put(bad, urgent=True)
            time.sleep(0.1)
            up += world["shop"].links.is_up("lender")
            looks += 1
        fault = world["shop"].links.presence()["lender"].fault
        blamed = world.blamed("lender")
    return {
        "share of time in which the shop is connected": round(up / looks, 2),
        "blamed by the relay": sorted(blamed),
        "blamed by the shop": fault,
    }
