"""Sessions of predictions: how they end, and what they leave behind."""

from __future__ import annotations

import pytest

from tests.node.worlds import until
from vertikal.errors import PeerStopped
from vertikal.node.audit import read

IDS = ("1001", "1002")


@pytest.fixture
def trained(world):
    """The three services with a model."""
    world.done(world.submit().digest)
    return world


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
    assert not bank.exchange._runs
    refused = [one for one in read(bank.site.store / "audit.log") if one.event == "refused"]
    assert str(refused[-1].facts["words"]).startswith("ValueError in test_sessions.py, line ")
    assert {one["status"] for one in lender.predict("credit", IDS, None, None)} == {"ok"}
