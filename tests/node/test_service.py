"""One service by itself: what must not end its threads."""

from __future__ import annotations

import pytest

from tests.node.worlds import lay_out
from vertikal.errors import InputError
from vertikal.node.approvals import Proposal, Signed
from vertikal.node.job import Job
from vertikal.node.jobs import Record
from vertikal.node.messages import Beat, pack
from vertikal.node.runs import Run
from vertikal.node.service import Service


@pytest.fixture
def bank(tmp_path):
    """The bank's service, not started, and what it said."""
    lay_out(tmp_path, rows=60)
    said = []
    service = Service(tmp_path / "bank" / "party.toml", said.append)
    yield service, said
    service._control.stop()
    service.exchange.stop()
    service.site.close()


def test_no_message_ends_its_link(bank, monkeypatch):
    service, said = bank
    lender = Service(service.site.folder.parent / "lender" / "party.toml", print)
    beat = pack("lender", "bank", Beat("1", 0.0), lender.site.keys)
    lender._control.stop()
    lender.exchange.stop()
    lender.site.close()

    def fails(*_):
        raise OverflowError("cannot convert")

    monkeypatch.setattr(service.council, "heard", fails)
    service._on_control("lender", beat)
    assert said == ["a message of lender was not taken in: OverflowError: cannot convert"]

    def refuses(*_):
        raise InputError("the log cannot be written")

    monkeypatch.setattr(service.site, "note_refusal", refuses)
    service._on_control("lender", b"nonsense")
    assert said[1:] == ["a message of lender was not taken in: the log cannot be written"]


def test_a_run_that_cannot_be_started_is_not_running(bank, monkeypatch):
    service, said = bank
    job = Job.load(service.site.folder.parent / "lender" / "credit.toml")
    proposal = Proposal("credit", job, "lender", 0.0, "1", 60, "")
    record = Record(1, Signed(b"x", b""), proposal, attempt=1)

    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Run, "start", start)
    with pytest.raises(RuntimeError):
        service._begin(record)
    assert service.run_of(record) is None
    assert said == ["job 1: run 1 begins"]
