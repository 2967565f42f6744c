"""Predictions by a model's name: which job is asked, by whom, and under whose policy."""

from __future__ import annotations

import threading
import time

import pytest

from tests.organisations import write_job
from tests.waiting import until
from vertikal.errors import InputError, PeerStopped
from vertikal.node.approval.job_records import JobBook
from vertikal.node.links.messages import Serve
from vertikal.node.predictions import predictor
from vertikal.node.predictions.session import WAIT
from vertikal.node.storage.audit_log import read

IDS = ("1001", "1002")


def predicted_by(leader):
    """Score some ids; returns the digest of the job whose model was used."""
    assert {one["status"] for one in leader.predict("credit", IDS, None, None)} == {"ok"}
    lines = read(leader.home.store / "audit.log")
    return [one.facts["digest"] for one in lines if one.event == "predictions"][-1]


def test_predictions_go_on_while_the_model_is_trained_again(trained, monkeypatch):
    lender = trained["lender"]
    first, again = lender.book.all()[0], trained.submit()
    trained.done(again.digest)
    assert predicted_by(lender) == again.digest
    # Without beats nobody takes the second job up again.
    monkeypatch.setattr(lender, "beat", lambda: None)
    again.done = False
    assert predicted_by(lender) == first.digest
    with pytest.raises(InputError, match=f"job {again.id} is not done at all parties yet"):
        lender.predict("credit", IDS, None, 2)
    first.done = False
    with pytest.raises(InputError, match=f"job {again.id} is not done at all parties yet"):
        lender.predict("credit", IDS, None, None)


def refused(world, words):
    """Return True if the bank has noted that it refused something with these words."""
    log = world["bank"].home.store / "audit.log"
    told = [line for line in read(log) if line.event == "refused"]
    return any(words in str(line.facts["words"]) for line in told)


def test_a_session_is_opened_by_the_leader_of_a_finished_job_only(world):
    digest = world.submit().digest
    world.done(digest)
    world["shop"].gossip.tell("bank", Serve(digest, "predict/x"))
    until(lambda: refused(world, f"predictions with job {digest[:12]}"), "not its leader")
    world["lender"].gossip.tell("bank", Serve("f" * 64, "predict/x"))
    until(lambda: refused(world, f"predictions with job {'f' * 12}"), "no such job")


def test_a_party_whose_run_ends_after_the_leaders_is_waited_for(world, monkeypatch):
    ended, changing = threading.Event(), JobBook.changing

    def changing_late(self, record):
        shop = world["shop"]
        if self is shop.book and shop.runs.run_of(record) is not None:
            assert ended.wait(30)
        return changing(self, record)

    monkeypatch.setattr(JobBook, "changing", changing_late)
    digest = world.submit().digest
    world.wait("lender", digest, lambda record: record.done, "done")
    record = world.record("lender", digest)
    with monkeypatch.context() as hurried:
        hurried.setattr(predictor, "SETTLING", 0.2)
        with pytest.raises(PeerStopped, match=f"job {record.id} is not done at shop, 0.2 s after"):
            world["lender"].predict("credit", IDS, None, None)
    threading.Timer(0.5, ended.set).start()
    assert predicted_by(world["lender"]) == digest


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('["open", "values", ', '["values", ', "policy of bank: disclosure 'open'"),
        ('who = ["lender"]', "who = []", "lender may not submit jobs"),
        ('"balance", ', "", "offers no column 'balance'"),
    ],
)
def test_predictions_end_with_the_policy_that_allowed_them(world, before, after, said):
    if "balance" in before:
        write_job(
            world.root, directions=16, settings='disclosure = "open"', bank='columns = ["balance"]'
        )
    world.done(world.submit().digest)
    lender, ids = world["lender"], ("1001", "1002")
    assert {one["status"] for one in lender.predict("credit", ids, None, None)} == {"ok"}
    world.stop("bank")
    file = world.root / "bank" / "party.toml"
    policy, rules = file.read_text().split("[[policy.standing]]")
    assert before in policy
    file.write_text(f"{policy.replace(before, after)}[[policy.standing]]{rules}")
    world.start("bank")
    world.connected()
    began = time.monotonic()
    with pytest.raises(PeerStopped, match=said):
        lender.predict("credit", ids, None, None)
    assert time.monotonic() - began < 0.5 * WAIT
    until(lambda: refused(world, said), "noted")


def test_predictions_wait_until_all_are_done(world):
    digest = world.submit().digest
    world.done(digest)
    record = world.record("lender", digest)
    record.done = False
    with pytest.raises(InputError, match=f"job {record.id} is not done at all parties yet"):
        world["lender"].predict("credit", ("1000",), None, None)
    record.done = True
