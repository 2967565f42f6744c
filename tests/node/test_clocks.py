"""Clocks that are wrong, or jump: what refuses a job, what does not notice, and what counts on."""

from __future__ import annotations

import time

import msgspec
import pytest

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from tests.waiting import until
from vertikal.errors import InputError
from vertikal.node.approval import proposals
from vertikal.node.approval.proposals import APPROVE, Decision, Proposal, SignedBytes
from vertikal.node.config.job_file import Job
from vertikal.node.links.messages import Answered, Asked, Beat
from vertikal.node.storage.audit_log import read

pytestmark = pytest.mark.usefixtures("quick_beats")

DAY = 86400.0


@pytest.fixture
def world(tmp_path):
    """Lender, bank and shop; the bank approves one job a day by rule, the shop any."""
    once = RULE.replace("per_day = 100", "per_day = 1")
    lay_out(tmp_path, rows=60, policy={"bank": once, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as three:
        yield three


@pytest.fixture
def clock(monkeypatch):
    """Sets the clock of all parties ahead by so many seconds, or back."""
    real = time.time

    def ahead(seconds):
        monkeypatch.setattr(time, "time", lambda: real() + seconds)

    return ahead


def test_a_job_of_a_party_whose_clock_is_a_day_behind_is_run(world, clock):
    clock(-DAY)
    digest = world.submit().digest
    clock(0.0)
    world.done(digest)
    assert "submitted by lender" in world["bank"].answer({"command": "show", "job": digest})["text"]


def test_a_job_of_a_party_whose_clock_is_a_day_ahead_is_refused_and_said(world, clock):
    clock(DAY)
    lender = world["lender"]
    job = Job.load(world.root / "lender" / "credit.toml")
    signed = proposals.propose("credit", job, "lender", 60, lender.home.keys)
    clock(0.0)
    lender.gossip.tell("bank", Asked(signed))
    until(lambda: any("clocks of lender and bank" in line for line in world.said["bank"]), "said")
    assert world["bank"].book.find(signed.digest) is None


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_jumps_while_a_job_runs_ends_nothing(world, clock, jump):
    record = world.submit()
    for name in ("bank", "shop"):
        world.record(name, record.digest)
    clock(jump)
    world.done(record.digest)
    for name, service in world.services.items():
        assert service.gossip.missing(world.record(name, record.digest)) == []
    assert world["lender"].predict("credit", ("1001",), None, None)[0]["status"] == "ok"


def test_a_rule_counts_its_jobs_also_after_the_clock_was_set_back(world, clock):
    first = world.submit()
    world.done(first.digest)
    clock(-DAY)
    second = world.submit()
    world.wait("shop", second.digest, lambda one: one.verdict("shop"), "the shop approves")
    bank = world.record("bank", second.digest)
    log = world["bank"].home.store / "audit.log"
    until(lambda: [line.event for line in read(log)].count("asked") == 2, "the bank considers it")
    time.sleep(0.5)
    assert bank.verdict("bank") == ""
    world["lender"].decisions.cancel(second.id, "")
    # A day later by the clock that was right, the rule holds again.
    clock(DAY + 60)
    third = world.submit()
    world.wait("bank", third.digest, lambda one: one.verdict("bank"), "the bank approves")


@pytest.mark.parametrize("when", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_time_that_is_no_date_is_refused_and_shows_nobody_an_error(world, when):
    digest = world.submit().digest
    bank, shop, lender = (world[name] for name in ("bank", "shop", "lender"))
    record = world.record("bank", digest)
    raw = msgspec.msgpack.encode(Decision(digest, "shop", APPROVE, when))
    with pytest.raises(InputError, match="decision: its time must be in seconds since 1970"):
        proposals.read_decision(_signed(raw, shop, b"vertikal decision\0"), bank.home.keys)
    shop.gossip.tell("bank", Answered(_signed(raw, shop, b"vertikal decision\0")))
    job = Job.load(world.root / "lender" / "credit.toml")
    raw = msgspec.msgpack.encode(Proposal("x", job, "lender", when, "0.1.0", 1, "n"))
    signed = _signed(raw, lender, b"vertikal proposal\0")
    lender.gossip.tell("bank", Asked(signed))
    until(lambda: any("job" in w and "its time must be" in w for w in _refusals(bank)), "refused")
    assert bank.book.find(signed.digest) is None
    bank.answer({"command": "show", "job": record.id})


def test_owners_are_told_who_refuses_whose_jobs(world):
    bank = world["bank"]

    def faults(when):
        # The next beat of the service itself would replace this one.
        bank.gossip.hear("shop", Beat("0.1.0", when))
        (shop,) = [one for one in bank.answer({"command": "peers"}) if one["name"] == "shop"]
        return [fault for fault in shop["faults"] if fault.startswith("clock")]

    for when, words in (
        (time.time() + DAY, "its jobs are refused"),
        (time.time() - DAY, "it refuses the jobs of this party"),
        (float("nan"), "at no date"),
    ):
        until(lambda w=when, t=words: any(t in one for one in faults(w)), words)
    until(lambda: faults(time.time()) == [], "a clock that fits")


def _signed(raw, service, domain):
    return SignedBytes(raw, service.home.keys.sign(domain + raw))


def _refusals(service):
    lines = read(service.home.store / "audit.log")
    return [str(line.facts.get("words")) for line in lines if line.event == "refused"]
