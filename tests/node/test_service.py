"""One service by itself: what must not end its threads."""

from __future__ import annotations

import pytest

from tests.node.alone import alone, kept, keys_of, proposal
from tests.organisations import lay_out
from vertikal.errors import InputError
from vertikal.node.links.messages import Beat, pack
from vertikal.node.runs.running_jobs import Run


@pytest.fixture
def bank(tmp_path):
    lay_out(tmp_path, rows=60)
    with alone(tmp_path) as (service, said):
        yield service, said


def test_no_message_ends_its_link(tmp_path, bank, monkeypatch):
    service, said = bank
    beat = pack("lender", "bank", Beat("1", 0.0), keys_of(tmp_path, "lender"))

    def fails(*_):
        raise OverflowError("cannot convert")

    monkeypatch.setattr(service.council, "heard", fails)
    service._on_control("lender", beat)
    assert said == ["a message of lender was not taken in: OverflowError: cannot convert"]

    def refuses(*_):
        raise InputError("the log cannot be written")

    monkeypatch.setattr(service.home, "note_refusal", refuses)
    service._on_control("lender", b"nonsense")
    assert said[1:] == ["a message of lender was not taken in: the log cannot be written"]


def test_a_run_that_cannot_be_started_is_not_running(tmp_path, bank, monkeypatch):
    service, said = bank
    record = kept(service, proposal(tmp_path))
    record.attempt = 1

    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Run, "start", start)
    with pytest.raises(RuntimeError):
        service._begin(record)
    assert service.run_of(record) is None
    assert said == ["job 1: run 1 begins"]
