"""Sessions of predictions: how they end, and what they leave behind."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.waiting import until
from vertikal.errors import DeadlineExceeded, InputError, PeerStopped, PredictionRefused
from vertikal.node.links.messages import Serve
from vertikal.node.models.store import ModelStore
from vertikal.node.predictions import model_cache, session, session_pool
from vertikal.node.predictions.session import PredictionSession
from vertikal.node.storage.audit_log import read

IDS = ("1001", "1002")


def meshes(party):
    """The meshes of a party that are not stopped: each has a thread that sends heartbeats."""
    return [one for one in threading.enumerate() if one.name == f"{party} heartbeat"]


def test_an_error_of_any_kind_ends_a_session_for_all(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]

    record = bank.home.log.record

    def fails(event, **facts):
        if event == "predicted":
            raise ValueError(f"{IDS[0]} is secret")
        return record(event, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(bank.home.log, "record", fails)
        with pytest.raises(PeerStopped, match="bank: ValueError; its owner knows more") as told:
            lender.predict("credit", IDS, None, None)
    assert IDS[0] not in str(told.value)
    until(lambda: not meshes("bank"), "the session has ended")

    def refused():
        return [one for one in read(bank.home.store / "audit.log") if one.event == "refused"]

    until(refused, "the owner finds the reason")
    place = f"ValueError in {Path(__file__).name}, line "
    assert str(refused()[-1].facts["words"]).startswith(place)
    assert {one["status"] for one in lender.predict("credit", IDS, None, None)} == {"ok"}


def test_models_share_a_table_in_memory_and_let_it_go_with_the_last(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]
    trained.done(trained.submit().digest)
    real, readings = model_cache.open_offer, []

    def open_offer(home, offer):
        readings.append(home.me)
        return real(home, offer)

    monkeypatch.setattr(model_cache, "open_offer", open_offer)
    for version in (1, 2):
        lender.predict("credit", IDS, None, version)
    assert readings.count("bank") == 1
    trained.models("bank").delete("credit", 1)
    bank.beat()
    assert {one["status"] for one in lender.predict("credit", IDS, None, 2)} == {"ok"}
    assert readings.count("bank") == 1
    monkeypatch.setattr(model_cache, "KEEP", 0.0)
    bank.beat()
    assert {one["status"] for one in lender.predict("credit", IDS, None, 2)} == {"ok"}
    assert readings.count("bank") == 2


def test_a_model_that_waits_for_a_party_holds_up_no_other(trained, monkeypatch):
    lender = trained["lender"]
    slow, quick = lender.book.all()[0], trained.submit()
    trained.done(quick.digest)
    asked, finish = threading.Event(), threading.Event()
    real = PredictionSession.ask

    def ask(self, ids, degraded):
        if self.record is slow:
            asked.set()
            assert finish.wait(60)
        return real(self, ids, degraded)

    monkeypatch.setattr(PredictionSession, "ask", ask)
    monkeypatch.setattr(session_pool, "WAIT", 0.01)
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
    monkeypatch.setattr(trained["bank"].predictor, "serve", lambda *_: None)

    def predict():
        try:
            lender.predict("credit", IDS, None, None)
        except PeerStopped as error:
            failures.append(str(error))

    asking = threading.Thread(target=predict)
    asking.start()
    until(lambda: meshes("lender"), "the lender waits for the bank")
    began = time.monotonic()
    lender.predictor.close()
    asking.join()
    assert time.monotonic() - began < 15
    assert "its service was stopped" in failures[0]
    until(lambda: not meshes("lender"), "its mesh is gone")
    with pytest.raises(PeerStopped, match="lender: its service was stopped"):
        lender.predict("credit", IDS, None, None)


def test_a_party_without_the_model_says_so_also_before_it_is_met(trained, monkeypatch):
    lender = trained["lender"]
    trained.models("bank").delete("credit")
    tell = lender.gossip.tell

    def late(name, message):
        tell(name, message)
        if isinstance(message, Serve):
            time.sleep(0.3)

    monkeypatch.setattr(lender.gossip, "tell", late)
    with pytest.raises(PeerStopped, match="bank has no model of this job"):
        lender.predict("credit", IDS, None, None)


def sent(service):
    """The lines of the audit log that say what left a party in predictions."""
    lines = read(service.home.store / "audit.log")
    return [one for one in lines if one.event == "sent" and one.facts["what"] == "predictions"]


def test_the_leader_ends_a_session_that_lies_idle(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]
    lender.predict("credit", IDS, None, None)
    assert meshes("lender")
    monkeypatch.setattr(session, "IDLE", 0.0)
    until(lambda: sent(lender) and sent(bank), "both have noted what they sent")
    until(lambda: not meshes("bank"), "the bank has ended it too")
    until(lambda: not meshes("lender"), "the mesh is gone")
    assert {one["status"] for one in lender.predict("credit", IDS, None, None)} == {"ok"}


def test_a_session_is_followed_by_another_after_many_requests(trained, monkeypatch):
    lender, bank = trained["lender"], trained["bank"]
    monkeypatch.setattr(session, "MOST_REQUESTS", 2)
    for _ in range(5):
        assert {one["status"] for one in lender.predict("credit", IDS, None, None)} == {"ok"}
    until(lambda: len(sent(lender)) == 2, "the lender has noted two sessions")
    until(lambda: len(sent(bank)) == 2, "the bank has noted two sessions")
    monkeypatch.setattr(session, "LONGEST", 0.0)
    until(lambda: len(sent(lender)) == 3, "an old one is ended")


def test_a_deleted_shard_ends_predictions_at_once_also_in_a_session(world, monkeypatch):
    """The store is another process's here as well: `vertikal model delete` beside the service."""
    world.done(world.submit().digest)
    lender, ids = world["lender"], IDS
    assert {one["status"] for one in lender.predict("credit", ids, None, None)} == {"ok"}
    ModelStore(world.root / "bank" / "store" / "models").delete("credit")
    with pytest.raises(PredictionRefused, match=r"bank refused .*: bank has no model of this job"):
        lender.predict("credit", ids, None, None)
    # The same where the next request opens a session of its own.
    monkeypatch.setattr(session, "LONGEST", 0.0)
    with pytest.raises(PeerStopped, match="bank has no model of this job"):
        lender.predict("credit", ids, None, None)
    assert "no model of this job" in str([*read(world.root / "bank" / "store" / "audit.log")])
    ModelStore(world.root / "lender" / "store" / "models").delete("credit")
    with pytest.raises(InputError, match="model 'credit' is not in this store"):
        lender.predict("credit", ids, None, None)
