"""Decisions about jobs: who may submit and cancel, and which jobs can be sent at all."""

from __future__ import annotations

import time

import msgspec
import pytest
from click.testing import CliRunner

from tests.node.alone import alone, keys_of
from tests.node.services import trio
from tests.organisations import NAMES, RULE, lay_out, write_job
from tests.waiting import until
from vertikal.cli import main
from vertikal.errors import InputError
from vertikal.node.approval import proposals
from vertikal.node.approval.proposals import SignedBytes
from vertikal.node.config.job_file import Job
from vertikal.node.links.messages import Asked, pack
from vertikal.node.links.standing_links import MAX_CONTROL

pytestmark = pytest.mark.usefixtures("quick_beats")


@pytest.fixture
def root(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    return tmp_path


def test_a_job_too_long_to_send_is_refused_when_it_is_submitted(root, monkeypatch):
    monkeypatch.setattr(proposals, "MAX_PROPOSAL", 100)
    with alone(root, "lender") as (lender, _):
        job = Job.load(root / "lender" / "credit.toml")
        with pytest.raises(InputError, match=r"^job: it would take \d+ bytes to send, at most 100"):
            lender.decisions.submit("credit", job)
        assert lender.book.all() == []


def test_the_longest_job_fits_into_a_message(root):
    keys = keys_of(root, "lender")
    signed = SignedBytes(bytes(proposals.MAX_PROPOSAL), keys.sign(b""))
    assert len(pack("x" * 64, "y" * 64, Asked(signed), keys)) <= MAX_CONTROL


@pytest.mark.parametrize("who", NAMES)
def test_a_job_that_is_not_approved_yet_can_be_cancelled_by_anybody(tmp_path, who):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        job = world.record(who, digest).id
        world[who].answer({"command": "cancel", "job": job, "words": "no"})
        for name in NAMES:
            record = world.wait(name, digest, lambda one: one.final, "ends")
            assert record.state(name) == f"cancelled by {who}"
        other = next(name for name in ("bank", "shop") if name != who)
        with pytest.raises(InputError, match="is decided already"):
            world[other].decisions.approve(world.record(other, digest).id)
        assert not any(world.models(name).newest_of_job(digest) for name in NAMES)


def test_a_job_that_nobody_approves_expires_and_tells_its_submitter(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"', top='expires = "2h"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.approve(digest, "shop")
        world.wait("lender", digest, lambda one: one.verdict("shop"), "hears of it")
        record = world.record("lender", digest)
        record.proposal = msgspec.structs.replace(record.proposal, submitted=time.time() - 7000)
        assert not record.expired
        late = msgspec.structs.replace(record.proposal, submitted=time.time() - 7300)
        bank = world.record("bank", digest)
        bank.proposal = late
        with pytest.raises(
            InputError, match="has expired: it was to be approved within 2h; lender"
        ):
            world["bank"].decisions.approve(bank.id)
        record.proposal = late
        why = "it expired: bank did not decide within 2h"
        for name in NAMES:
            ended = world.wait(name, digest, lambda one: one.final, "ends")
            assert (ended.final.party, ended.final.words) == ("lender", why)
        until(lambda: any(why in line for line in world.said["bank"]), "the bank's owner reads it")
        party = str(tmp_path / "lender" / "party.toml")
        listed = CliRunner().invoke(main, ["job", "list", "--party", party]).output
        assert f"stopped by lender: {why}" in listed


def test_a_job_that_all_have_approved_does_not_expire(tmp_path):
    lay_out(tmp_path, rows=60, policy=RULE)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        record = world.record("lender", digest)
        world.done(digest)
        record.proposal = msgspec.structs.replace(record.proposal, submitted=1.0)
        record.done = False
        assert not record.expired
        record.done = True
