"""One member that sends too much: the others' beats are heard in time, and disks do not fill."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack

import msgspec
import pytest

from tests.node.services import trio
from tests.organisations import NAMES, lay_out, write_job
from tests.waiting import until
from vertikal.node.approval.proposals import Proposal, SignedBytes
from vertikal.node.config.job_file import Job
from vertikal.node.links.messages import Asked, pack
from vertikal.node.storage.audit_log import read

FLOOD = 600


@pytest.fixture
def world(tmp_path):
    lay_out(tmp_path, rows=60, policy={"bank": "proposals_per_day = 40\n"})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as three:
        yield three


def proposals_of(world, count):
    """So many proposals of the lender to the bank, all different, signed and packed."""
    job = Job.load(world.root / "lender" / "credit.toml")
    keys = world["lender"].home.keys
    packed = []
    for number in range(count):
        proposal = Proposal("x", job, "lender", time.time(), "0.1.0", 1, str(number))
        raw = msgspec.msgpack.encode(proposal)
        signed = SignedBytes(raw, keys.sign(b"vertikal proposal\0" + raw))
        packed.append(pack("lender", "bank", Asked(signed), keys))
    return packed


class Lateness:
    """The longest time that the bank did not hear the shop, whose beats the lender passes on."""

    def __init__(self, bank):
        self._bank = bank
        self._stopped = threading.Event()
        self.worst = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._stopped.wait(0.05):
            late = time.monotonic() - self._bank.gossip.beats["shop"].received
            self.worst = max(self.worst, late)

    def end(self):
        self._stopped.set()
        self._thread.join()
        return self.worst


def test_a_flood_of_proposals_does_not_delay_the_others_beats(world):
    """3,000 of them in 3.5 s made the beats of a third party 99 s late."""
    packed = proposals_of(world, FLOOD)
    bank = world["bank"]
    lateness = Lateness(bank)
    for message in packed:
        world["lender"].links.tell("bank", message)
    until(lambda: len(bank.book.all()) >= 40, "what the policy allows is taken in")
    now = time.time()
    until(lambda: bank.gossip.beats["shop"].beat.time > now + 1.0, "the shop is heard")
    assert lateness.end() < 4.0
    assert len(bank.book.all()) == 40
    # It is told once, not six hundred times.
    told = [line for line in world.said["bank"] if "40 proposals of lender a day" in line]
    assert len(told) == 1
    refused = [line for line in read(bank.home.store / "audit.log") if line.event == "refused"]
    assert len(refused) == 1


def test_a_member_that_is_refused_all_the_time_does_not_fill_the_log(world):
    lender, bank = world["lender"], world["bank"]
    for _ in range(500):
        lender.links.tell("bank", b"nonsense")
    digest = world.submit().digest
    world.record("bank", digest)
    refused = [line for line in read(bank.home.store / "audit.log") if line.event == "refused"]
    assert 1 <= len(refused) <= 110
    assert {line.facts["peer"] for line in refused} == {"lender"}


def test_parties_go_on_after_a_flood(world):
    for message in proposals_of(world, 100):
        world["lender"].links.tell("shop", message)
    digest = world.submit().digest
    world.approve(digest, "bank", "shop")
    world.done(digest)
    assert set(world.services) == set(NAMES)


def test_idle_connections_of_strangers_delay_no_beat_and_no_job(world):
    host, _, port = world["lender"].home.federation.member("lender").listens.rpartition(":")
    lateness = Lateness(world["bank"])
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection((host, int(port)), 20))
        digest = world.submit().digest
        world.approve(digest, "bank", "shop")
        world.done(digest)
    assert lateness.end() < 4.0
