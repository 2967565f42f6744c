"""The standing links: who may send what over which link, and what is passed on."""

from __future__ import annotations

import threading
import time

import msgspec
import pytest

from tests.conformance.networks import credentials, free_port, identity
from vertikal.errors import IdentityError, MeshError, NameTaken, PeerStopped, WireError
from vertikal.mesh.network_links import Link
from vertikal.node.config.federation_file import FederationFile, Member
from vertikal.node.links import standing_links
from vertikal.node.links.standing_links import (
    CONTROL,
    HEAD,
    MAX_CONTROL,
    NOTICE,
    RUN,
    Notice,
    StandingLinks,
    short_name,
)

NAMES = ("lender", "bank", "shop")


class Heard:
    """A run that remembers what it was told."""

    me = "bank"

    def __init__(self, parties=NAMES):
        self.parties = parties
        self.run = b"12345678"
        self.told = []

    def peer_up(self, name):
        self.told.append(("up", name))

    def peer_down(self, name):
        self.told.append(("down", name))

    def peer_restarted(self, name):
        self.told.append(("restarted", name))

    def parcel(self, sender, body):
        self.told.append((sender, body))


def end(name):
    """One party's end, not started: links are made by hand."""
    members = []
    for one in NAMES:
        certificate = identity(one).certificate
        listens = f"127.0.0.1:{free_port()}" if one == "lender" else None
        members.append(Member(one, certificate.fingerprint, certificate.pem.decode(), listens))
    messages = []
    links = StandingLinks(
        name,
        FederationFile.of(tuple(members)),
        credentials(name, NAMES),
        lambda sender, raw: messages.append((sender, raw)),
        lambda *_: None,
    )
    return links, messages


@pytest.fixture
def bank():
    links, messages = end("bank")
    link = Link("lender", True)
    links.link_up(link)
    yield links, link, messages
    links.stop()


@pytest.fixture
def lender():
    links, _ = end("lender")
    yield links
    links.stop()


def parcel(kind, sender, receiver, body=b"x", run=b"12345678"):
    return HEAD.pack(kind, run, short_name(sender), short_name(receiver)) + body


def notice(party, up, session=b"s"):
    return parcel(NOTICE, "lender", "bank", msgspec.msgpack.encode(Notice(party, up, session)))


def test_parcels_reach_whom_they_are_for(bank):
    links, link, messages = bank
    run = Heard()
    links.attach(run)
    links.arrived(parcel(CONTROL, "lender", "bank", b"hello"), link)
    links.arrived(parcel(CONTROL, "shop", "bank", b"relayed"), link)
    assert messages == [("lender", b"hello"), ("shop", b"relayed")]
    links.arrived(parcel(RUN, "shop", "bank", b"packet"), link)
    links.arrived(parcel(RUN, "shop", "bank", b"packet", run=b"another!"), link)
    assert run.told == [("shop", b"packet")]
    with pytest.raises(MeshError, match="under way already"):
        links.attach(run)
    links.detach(run)
    links.arrived(parcel(RUN, "shop", "bank", b"late"), link)
    assert len(run.told) == 1


def test_a_run_hears_nobody_but_its_parties(bank):
    links, link, _ = bank
    run = Heard(("lender", "bank"))
    links.attach(run)
    links.arrived(parcel(RUN, "shop", "bank"), link)
    assert run.told == []


@pytest.mark.parametrize(
    "raw",
    [
        b"short",
        parcel(CONTROL, "lender", "zoe"),
        parcel(CONTROL, "zoe", "bank"),
        parcel(CONTROL, "bank", "bank"),
        parcel(CONTROL, "lender", "shop"),  # the bank relays nothing
        parcel(9, "lender", "bank"),
        parcel(NOTICE, "shop", "bank"),  # only the relay says who is there
        parcel(NOTICE, "lender", "bank", b"nonsense"),
        parcel(CONTROL, "lender", "bank", b"x" * (MAX_CONTROL + 1)),
    ],
)
def test_nonsense_is_refused(bank, raw):
    links, link, messages = bank
    with pytest.raises(WireError):
        links.arrived(raw, link)
    assert messages == []


def test_nobody_speaks_in_anothers_name(lender):
    link = Link("bank", False)
    with pytest.raises(WireError, match="a parcel of shop over the link of bank"):
        lender.arrived(parcel(CONTROL, "shop", "lender"), link)


def test_the_relay_tells_who_is_there(bank):
    links, link, _ = bank
    run = Heard()
    links.attach(run)
    links.arrived(notice("shop", True, b"one"), link)
    assert links.is_up("shop")
    links.arrived(notice("shop", False), link)
    links.arrived(notice("shop", True, b"two"), link)
    assert run.told == [("up", "shop"), ("down", "shop"), ("restarted", "shop")]
    assert isinstance(links.restarted("lender"), PeerStopped)
    links.link_down(link)
    assert not links.is_up("shop")
    assert not links.is_up("lender")
    assert run.told[-2:] == [("down", "lender"), ("down", "shop")]


def test_a_second_living_process_of_a_name_is_refused(lender, monkeypatch):
    lender.admit("bank", b"one")
    lender.link_up(Link("bank", False))
    lender.admit("bank", b"one")
    with pytest.raises(NameTaken, match="two processes claim the name 'bank'"):
        lender.admit("bank", b"two")
    with pytest.raises(IdentityError, match="'zoe' is not another party"):
        lender.admit("zoe", b"x")
    # One that is silent gives way.
    monkeypatch.setattr(standing_links, "STALE", 0.0)
    lender.admit("bank", b"two")


def test_a_peer_that_refused_is_dialled_again_and_its_words_are_kept(bank):
    links, _, _ = bank
    links.blame("lender", MeshError("bank: lender refused\nthis party"))
    assert links.presence()["lender"].fault == "bank: lender refused this party"
    links.link_up(Link("lender", True))
    assert links.presence()["lender"].fault == ""


def test_control_messages_are_bounded(bank):
    with pytest.raises(WireError, match="at most"):
        bank[0].tell("shop", b"x" * (MAX_CONTROL + 1))


def test_nothing_is_sent_to_who_is_not_in_the_federation_any_more(bank):
    links, link, _ = bank
    links.tell("zoe", b"to zoe")
    links.tell("shop", b"to shop")
    link.outbox.finish()
    assert [raw[HEAD.size :] for raw in link.outbox] == [b"to shop"]


def overtaken(links, monkeypatch, new):
    """Another thread is quicker between the end of a link and the word of it.

    It takes the moment at which the thread that ends the link looks at the clock.
    """
    now, mine = time.monotonic, threading.get_ident()

    def late():
        if threading.get_ident() == mine:
            monkeypatch.setattr(time, "monotonic", now)
            links.link_up(new)
            if new.peer == links.relay:
                links.arrived(notice("shop", True), new)
        return now()

    monkeypatch.setattr(time, "monotonic", late)


def test_the_end_of_an_old_link_that_is_told_late_does_not_hide_the_new_one(lender, monkeypatch):
    old, new, other = Link("bank", False), Link("bank", False), Link("shop", False)
    run = Heard()
    lender.link_up(old)
    lender.link_up(other)
    lender.attach(run)
    overtaken(lender, monkeypatch, new)
    lender.link_down(old)
    assert lender.is_up("bank")
    assert run.told == [("up", "bank")]
    other.outbox.finish()
    told = [msgspec.msgpack.decode(raw[HEAD.size :]) for raw in other.outbox]
    assert [one["up"] for one in told if one["party"] == "bank"] == [True, True]
    lender.link_down(new)
    assert not lender.is_up("bank")


def test_nor_does_it_hide_those_behind_the_relay(bank, monkeypatch):
    links, old, _ = bank
    links.arrived(notice("shop", True), old)
    overtaken(links, monkeypatch, Link("lender", True))
    links.link_down(old)
    assert links.is_up("lender")
    assert links.is_up("shop")
