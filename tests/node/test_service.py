"""One service by itself: what must not end its threads, and what it says about absent peers."""

from __future__ import annotations

import pytest

from tests.node.alone import alone, keys_of
from tests.node.services import trio
from tests.organisations import lay_out
from tests.waiting import until
from vertikal.errors import InputError
from vertikal.mesh.network_links import Link
from vertikal.node.links.messages import Beat, pack
from vertikal.node.links.standing_links import CONTROL, HEAD, short_name


@pytest.fixture
def bank(tmp_path):
    lay_out(tmp_path, rows=60)
    with alone(tmp_path) as (service, said):
        yield service, said


def receive(service, message):
    """Hand the service a control message of the lender, as its link does."""
    head = HEAD.pack(CONTROL, bytes(8), short_name("lender"), short_name("bank"))
    service.links.arrived(head + message, Link("lender", False))


def test_no_message_ends_its_link(tmp_path, bank, monkeypatch):
    service, said = bank
    beat = pack("lender", "bank", Beat("1", 0.0), keys_of(tmp_path, "lender"))

    def fails(*_):
        raise OverflowError("cannot convert")

    monkeypatch.setattr(service.gossip, "hear", fails)
    receive(service, beat)
    assert said == ["a message of lender was not taken in: OverflowError: cannot convert"]

    def refuses(*_):
        raise InputError("the log cannot be written")

    monkeypatch.setattr(service.home, "note_refusal", refuses)
    receive(service, b"nonsense")
    assert said[1:] == ["a message of lender was not taken in: the log cannot be written"]


def test_a_port_where_nobody_listens_is_named(tmp_path):
    lay_out(tmp_path, rows=60)
    with trio(tmp_path, ("bank",)) as world:
        address = world["bank"].home.federation.member("lender").listens
        why = f"connection refused at {address}, trying again"
        until(lambda: f"lender is not connected: {why}" in world.said["bank"], "said", world.told)
        (lender, _) = world["bank"].answer({"command": "peers"})
        assert any(why in fault for fault in lender["faults"])
        # Once, however often it is tried.
        assert sum(why in line for line in world.said["bank"]) == 1
        world.start("lender")
        world.connected()
        assert world["bank"].links.presence()["lender"].fault == ""
