"""Faults between submitting a job and its model, and what parties make of them."""

from __future__ import annotations

import errno
import os
import re
import time
from pathlib import Path

import msgspec
import pytest

from tests.node.services import Trio, trio
from tests.organisations import NAMES, RULE, lay_out, write_job
from tests.waiting import until
from vertikal import files
from vertikal.algorithms.kernel_machine.algorithm import FDSKL, Fdskl
from vertikal.errors import InputError
from vertikal.node.approval import proposals
from vertikal.node.approval.proposals import Proposal, SignedBytes
from vertikal.node.config.job_file import Job
from vertikal.node.links.messages import Asked, Beat, pack
from vertikal.node.runs import party_run

pytestmark = pytest.mark.usefixtures("quick_beats")


def endless(root):
    """A job that runs until somebody ends it."""
    settings = (
        'disclosure = "open"\nsolver = { name = "dsg", n_steps = 100000000, step_size = 0.001 }\n'
    )
    write_job(root, directions=16, settings=settings + "cache_size = 100")


def running(world, digest):
    for name in NAMES:
        world.wait(
            name,
            digest,
            lambda one, n=name: (
                (r := world[n].runs.run_of(one)) and r.progress.stage in ("solve", "serve")
            ),
            "trains",
        )


@pytest.mark.parametrize("who", NAMES)
def test_any_party_can_cancel_a_running_job(world, who):
    endless(world.root)
    digest = world.submit().digest
    running(world, digest)
    job = world.record(who, digest).id
    told = world[who].answer({"command": "cancel", "job": job, "words": "enough"})
    assert told["state"].endswith(f"by {who}") or told["state"].startswith("running")
    for name in NAMES:
        record = world.wait(
            name, digest, lambda one, n=name: one.final and not world[n].runs.run_of(one), "ends"
        )
        assert record.state(name) == f"cancelled by {who}"
        assert record.final.words == "enough"
    with pytest.raises(InputError, match="has ended already"):
        world[who].answer({"command": "cancel", "job": job})


def test_two_jobs_at_once_and_the_same_one_twice(world):
    endless(world.root)
    first = world.submit().digest
    running(world, first)
    with pytest.raises(InputError, match=r"is job credit-\w{4} already .* cancel credit-"):
        world.submit()
    write_job(world.root, directions=16, settings='disclosure = "open"')
    second = world.submit().digest
    world.done(second)
    assert world["lender"].runs.run_of(world.record("lender", first)) is not None
    world["shop"].answer({"command": "cancel", "job": world.record("shop", first).id})
    # What has ended may be asked for again; it is another job.
    third = world.submit().digest
    assert third != second
    world.done(third)
    assert world.models("bank").show("credit").version == 2


def test_a_table_that_changed_after_its_owner_approved(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.approve(digest, "bank")
        table = tmp_path / "bank" / "people.csv"
        lines = table.read_text().splitlines()
        table.write_text("\n".join([*lines[:-1], lines[1].replace(lines[1].split(",")[0], "77")]))
        world.approve(digest, "shop")
        for name in NAMES:
            record = world.wait(name, digest, lambda one: one.final, "stops")
            assert record.final.party == "bank"
            # The others are not told anything about the table.
            assert record.final.words == "bank cannot go on; its owner knows why"
        assert "has changed since bank approved" in world.record("bank", digest).note
        assert all(world.models(name).newest_of_job(digest) is None for name in NAMES)


@pytest.mark.parametrize(
    ("late", "who"),
    [
        ("align", lambda party, found: party.name),
        ("learn_preparation", lambda source, found: found[0].party),
    ],
)
def test_a_table_that_changes_during_a_run(world, monkeypatch, late, who):
    """Exported anew in another order, while others are waited for or once its columns are read."""
    table = world.root / "bank" / "people.csv"
    real, train, learned = getattr(party_run, late), Fdskl.train, []

    def then_changed(first, *arguments, **options):
        found = real(first, *arguments, **options)
        if who(first, found) == "bank":
            title, *lines = table.read_text().splitlines()
            table.write_text("\n".join([title, *reversed(lines)]))
        return found

    def trains(self, party, *arguments):
        learned.append(party.name)
        return train(self, party, *arguments)

    monkeypatch.setattr(party_run, late, then_changed)
    monkeypatch.setattr(Fdskl, "train", trains)
    digest = world.submit().digest
    record = world.wait("bank", digest, lambda one: one.final or one.done, "ends")
    assert "has changed since bank approved" in record.note
    assert "bank" not in learned


def test_a_full_disk_ends_the_run_and_not_the_job(world, monkeypatch):
    real, full = os.replace, {"shop": True}

    def replace(source, target):
        if full["shop"] and "shop/store/checkpoints" in os.fspath(target):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(files.os, "replace", replace)
    digest = world.submit().digest
    world.wait("shop", digest, lambda one: "free some space" in one.note, "says that it is full")
    full["shop"] = False
    world.done(digest)


def test_a_peer_on_another_version_is_named(world):
    lender, shop = world["lender"], world["shop"]
    record = world.record("lender", world.submit().digest)

    def is_named():
        # The next beat of the service itself would replace this one.
        shop.gossip.tell("lender", Beat("0.0.9", time.time(), oldest=0, newest=0))
        waits = lender.gossip.missing(record)
        faults = [fault for one in lender.answer({"command": "peers"}) for fault in one["faults"]]
        return any("shop runs vertikal 0.0.9" in one for one in waits) and any(
            "version: shop runs 0.0.9" in one for one in faults
        )

    until(is_named, "names the version")


def test_clocks_apart(world):
    job = Job.load(world.root / "lender" / "credit.toml")
    ahead = Proposal("x", job, "lender", time.time() + 4000, "0.1.0", 1, "n")
    raw = msgspec.msgpack.encode(ahead)
    signed = SignedBytes(raw, world["lender"].home.keys.sign(b"vertikal proposal\0" + raw))
    world["lender"].gossip.tell("bank", Asked(signed))
    until(lambda: any("clocks of lender and bank" in line for line in world.said["bank"]), "said")
    assert world["bank"].book.find(signed.digest) is None
    old = msgspec.structs.replace(ahead, submitted=time.time() - 40 * 86400)
    with pytest.raises(InputError, match="submitted 40 days ago; submit it again"):
        proposals.check_age(old, "bank")
    keys = world["shop"].home.keys

    def told():
        late = Beat("0.1.0", time.time() - 1000)
        world["shop"].links.tell("lender", pack("shop", "lender", late, keys))
        peers = world["lender"].answer({"command": "peers"})
        # A busy machine hears it later than it was sent.
        return re.search(r"10\d\d s behind", str([one["faults"] for one in peers]))

    until(told, "a clock behind")


def test_a_lost_party_stops_a_job_that_says_so(world):
    endless(world.root)
    path = world.root / "lender" / "credit.toml"
    path.write_text('on_loss = "stop"\n' + path.read_text())
    digest = world.submit().digest
    running(world, digest)
    world.stop("shop")
    for name in ("lender", "bank"):
        record = world.wait(name, digest, lambda one: one.final, "stops")
        assert record.final.verdict == "stop"
    assert "shop" in world.record("lender", digest).final.words


def test_approvals_and_jobs_survive_a_restart(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    world = Trio(tmp_path)
    try:
        world.start(*NAMES)
        world.connected()
        digest = world.submit().digest
        world.approve(digest, "bank")
        world.record("shop", digest)
        world.stop()
        world.start("shop", "bank")
        world.approve(digest, "shop")
        world.stop("bank")
        world.start("lender", "bank")
        world.done(digest)
    finally:
        world.stop()


def test_a_job_that_all_have_done_is_not_spoken_of_any_more(world):
    digest = world.submit().digest
    world.done(digest)

    def silent():
        beats = [last.beat for name in NAMES for last in world[name].gossip.beats.values()]
        return not any(beat.jobs for beat in beats)

    until(silent, "nobody speaks of it")
    for _ in range(5):
        now = time.time()
        beats = world["bank"].gossip.beats
        until(lambda b=beats, n=now: b["shop"].beat.time > n and b["lender"].beat.time > n, "beats")
        assert silent()
    assert not world["lender"].gossip.is_alive(world.record("lender", digest))


def test_a_rule_approves_so_many_jobs_a_day(tmp_path):
    rule = RULE.replace("per_day = 100", "per_day = 1")
    lay_out(tmp_path, rows=60, policy={"bank": rule, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        first = world.submit().digest
        world.done(first)
        assert world.record("bank", first).decisions["bank"][1].words == "by a standing rule"
        second = world.submit().digest
        world.wait("bank", second, lambda one: one.verdict("shop") == "approve", "shop approves")
        assert world.record("bank", second).state("bank") == "asks for your approval"


def test_a_store_serves_one_service(world):
    again = Trio(world.root)
    with pytest.raises(InputError, match="the service of this party runs already"):
        again.start("bank")


def test_almost_the_same_people_are_flagged(tmp_path):
    warned = 'differencing = "warn"\n'
    policy = {"lender": warned, "bank": RULE, "shop": warned + RULE}
    lay_out(tmp_path, rows=60, policy=policy)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        first = world.submit().digest
        world.done(first)
        for name in NAMES:
            table = tmp_path / name / "people.csv"
            lines = table.read_text().splitlines()
            table.write_text("\n".join(line for line in lines if not line.startswith("1003,")))
        second = world.submit().digest
        record = world.wait("bank", second, lambda one: one.final, "refuses")
        assert record.final.party == "bank"
        assert "differ from those of an earlier job by 1" in record.note
        assert "differencing" in (tmp_path / "bank" / "store" / "audit.log").read_text()


def test_everything_on_disk_is_the_owners_and_nothing_secret_is_said(world):
    digest = world.submit().digest
    world.done(digest)
    world["lender"].predict("credit", ("1001", "1002"), None, None)
    found = []
    for name in NAMES:
        store = Path(world.root, name, "store")
        found += [path for path in (store, *store.rglob("*")) if path.lstat().st_mode & 0o077]
        secret = world.models(name).load("credit", FDSKL, None).shard.seed
        said = "\n".join(world.said[name]) + (store / "audit.log").read_text()
        key = (world.root / name / f"{name}.key").read_text().splitlines()[1]
        assert secret.hex() not in said
        assert key not in said
        # No id of anybody in a log.
        assert not [str(number) for number in range(1000, 1120) if f'"{number}"' in said]
    assert found == []
