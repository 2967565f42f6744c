"""Sessions of predictions: how they end, and what they leave behind."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.node.services import trio
from tests.organisations import DEGRADED, RULE, lay_out, until, write_job
from vertikal.errors import DeadlineExceeded, InputError, PeerStopped, PredictionRefused
from vertikal.node.links.messages import Serve
from vertikal.node.models.store import ModelStore
from vertikal.node.predictions import model_cache, prediction
from vertikal.node.predictions.keyed_lock import KeyedLock
from vertikal.node.predictions.prediction import WAIT, Session
from vertikal.node.storage.audit_log import read

IDS = ("1001", "1002")


@pytest.fixture
def trained(tmp_path, quick_beats):
    """Three services with a model, who also take part in degraded scores."""
    lay_out(tmp_path, rows=60, policy={"bank": DEGRADED + RULE, "shop": DEGRADED + RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as three:
        three.done(three.submit().digest)
        yield three


def test_an_error_of_any_kind_ends_a_session_for_all(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]

    def spend(rows):
        raise ValueError(f"{IDS[0]} is secret")

    with monkeypatch.context() as patch:
        patch.setattr(bank.predictions._limit, "spend", spend)
        with pytest.raises(PeerStopped, match="bank: ValueError; its owner knows more") as told:
            lender.predict("credit", IDS, None, None)
    assert IDS[0] not in str(told.value)
    until(lambda: not bank.predictions._serving, "the session has ended")
    assert not bank.links._runs
    refused = [one for one in read(bank.home.store / "audit.log") if one.event == "refused"]
    assert str(refused[-1].facts["words"]).startswith("ValueError in test_sessions.py, line ")
    assert {one["status"] for one in lender.predict("credit", IDS, None, None)} == {"ok"}


def test_a_table_that_loses_a_row_in_the_middle_of_a_request(trained, monkeypatch):
    """The row was said to be known: a score marked ok is never made with training means."""
    lender, table = trained["lender"], Path(trained["bank"].home.folder, "people.csv")
    before = lender.predict("credit", IDS, None, None)
    real = Session._choose

    def choose(self, chosen):
        if chosen is not None:
            titles, *lines = table.read_text().splitlines(keepends=True)
            table.write_text("".join([titles, *(x for x in lines if not x.startswith(IDS))]))
        return real(self, chosen)

    monkeypatch.setattr(Session, "_choose", choose)
    assert lender.predict("credit", IDS, True, None) == before
    assert {x["status"] for x in lender.predict("credit", IDS, True, None)} == {"degraded"}


def test_predictions_go_on_while_the_model_is_trained_again(trained, monkeypatch):
    lender = trained["lender"]
    first, again = lender.book.all()[0], trained.submit()
    trained.done(again.digest)
    assert lender._record_of("credit", None) is again
    # Without beats nobody takes the second job up again.
    monkeypatch.setattr(lender.gossip, "beat", lambda: None)
    again.done = False
    assert lender._record_of("credit", None) is first
    assert {one["status"] for one in lender.predict("credit", IDS, None, None)} == {"ok"}
    with pytest.raises(InputError, match="job 2 is not done at all parties yet"):
        lender.predict("credit", IDS, None, 2)
    first.done = False
    with pytest.raises(InputError, match="job 2 is not done at all parties yet"):
        lender.predict("credit", IDS, None, None)


def test_models_share_a_table_in_memory_and_let_it_go_with_the_last(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]
    trained.done(trained.submit().digest)
    for version in (1, 2):
        lender.predict("credit", IDS, None, version)
    at_hand = bank.predictions._shelf
    assert (len(at_hand._held), len(at_hand._rows)) == (2, 1)
    bank.models.delete("credit", 1)
    until(lambda: len(at_hand._held) == 1, "the deleted one is gone")
    assert len(at_hand._rows) == 1
    monkeypatch.setattr(model_cache, "KEEP", 0.0)
    until(lambda: not at_hand._held and not at_hand._rows, "the idle one is gone")
    assert {one["status"] for one in lender.predict("credit", IDS, None, 2)} == {"ok"}


def test_a_model_that_waits_for_a_party_holds_up_no_other(trained, monkeypatch):
    lender = trained["lender"]
    slow, quick = lender.book.all()[0], trained.submit()
    trained.done(quick.digest)
    asked, finish = threading.Event(), threading.Event()
    real = Session.ask

    def ask(self, ids, degraded):
        if self._record is slow:
            asked.set()
            assert finish.wait(60)
        return real(self, ids, degraded)

    monkeypatch.setattr(Session, "ask", ask)
    monkeypatch.setattr(lender.predictions, "_turns", KeyedLock(0.01))
    first = threading.Thread(target=lender.predict, args=("credit", IDS, None, 1))
    first.start()
    try:
        assert asked.wait(60)
        assert {one["status"] for one in lender.predict("credit", IDS, None, 2)} == {"ok"}
        with pytest.raises(DeadlineExceeded, match="lender: other requests with this model"):
            lender.predict("credit", IDS, None, 1)
    finally:
        finish.set()
        first.join()


def test_a_service_that_stops_breaks_off_a_first_contact(trained, monkeypatch):
    lender, failures = trained["lender"], []
    monkeypatch.setattr(trained["bank"].predictions, "serve", lambda *_: None)

    def predict():
        try:
            lender.predict("credit", IDS, None, None)
        except PeerStopped as error:
            failures.append(str(error))

    asking = threading.Thread(target=predict)
    asking.start()
    until(lambda: lender.predictions._all, "the lender waits for the bank")
    began = time.monotonic()
    lender.predictions.close()
    asking.join()
    assert time.monotonic() - began < 15
    assert "its service was stopped" in failures[0]
    assert not lender.predictions._all
    assert not lender.links._runs
    with pytest.raises(PeerStopped, match="lender: its service was stopped"):
        lender.predict("credit", IDS, None, None)


def test_a_party_without_the_model_says_so_also_before_it_is_met(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]
    bank.models.delete("credit")

    def late(record, name):
        opened(record, name)
        time.sleep(0.3)

    opened = lender.predictions._open
    monkeypatch.setattr(lender.predictions, "_open", late)
    with pytest.raises(PeerStopped, match="bank has no model of this job"):
        lender.predict("credit", IDS, None, None)


def sent(service):
    """The lines of the audit log that say what left a party in predictions."""
    lines = read(service.home.store / "audit.log")
    return [one for one in lines if one.event == "sent" and one.facts["what"] == "predictions"]


def test_the_leader_ends_a_session_that_lies_idle(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]
    lender.predict("credit", IDS, None, None)
    assert lender.links._runs
    monkeypatch.setattr(prediction, "IDLE", 0.0)
    until(lambda: sent(lender) and sent(bank), "both have noted what they sent")
    until(lambda: not bank.predictions._all, "the bank has ended it too")
    assert not lender.predictions._led
    until(lambda: not lender.links._runs, "the mesh is gone")
    assert {one["status"] for one in lender.predict("credit", IDS, None, None)} == {"ok"}


def test_a_session_is_followed_by_another_after_many_requests(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]
    monkeypatch.setattr(prediction, "MOST_REQUESTS", 2)
    for _ in range(5):
        assert {one["status"] for one in lender.predict("credit", IDS, None, None)} == {"ok"}
    until(lambda: len(sent(lender)) == 2, "the lender has noted two sessions")
    until(lambda: len(sent(bank)) == 2, "the bank has noted two sessions")
    monkeypatch.setattr(prediction, "LONGEST", 0.0)
    until(lambda: len(sent(lender)) == 3, "an old one is ended")


def refused(world, words):
    """Whether the bank has noted that it refused something with these words."""
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
    assert world["bank"]._predictions is None


def test_a_deleted_shard_ends_predictions_at_once_also_in_a_session(world):
    """The store is another process's here as well: `vertikal model delete` beside the service."""
    digest = world.submit().digest
    world.done(digest)
    lender, ids = world["lender"], ("1001", "1002")
    assert {one["status"] for one in lender.predict("credit", ids, None, None)} == {"ok"}
    ModelStore(world.root / "bank" / "store" / "models").delete("credit")
    with pytest.raises(PredictionRefused, match=r"bank refused .*: bank has no model of this job"):
        lender.predict("credit", ids, None, None)
    # The same where the next request opens a session of its own.
    lender.predictions._close(digest, "")
    with pytest.raises(PeerStopped, match="bank has no model of this job"):
        lender.predict("credit", ids, None, None)
    assert "no model of this job" in str([*read(world.root / "bank" / "store" / "audit.log")])
    ModelStore(world.root / "lender" / "store" / "models").delete("credit")
    with pytest.raises(InputError, match="model 'credit' is not in this store"):
        lender.predict("credit", ids, None, None)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('["open", "values"]', '["values"]', "disclosure 'open' is not allowed"),
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
