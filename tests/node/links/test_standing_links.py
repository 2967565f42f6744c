"""The standing links: who may send what over which link, and what is passed on."""

from __future__ import annotations

import threading
import time

import msgspec
import pytest

from tests.conformance.networks import credentials, identity
from tests.ports import free_port
from tests.waiting import until
from vertikal.errors import IdentityError, MeshError, NameTaken, PeerStopped, WireError
from vertikal.mesh.network_links import Link
from vertikal.mesh.packets import envelope
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
PACKET = envelope.pack_head(envelope.STATE, 0, 1, 2, 0)
"""A message of a run as the relay passes it on: its envelope can be read, its body cannot."""


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

    def peer_removed(self, name):
        self.told.append(("removed", name))

    def parcel(self, sender, body):
        self.told.append((sender, body))


def federation(*listening):
    members = []
    for one in NAMES:
        certificate = identity(one).certificate
        listens = f"127.0.0.1:{free_port()}" if one in listening else None
        members.append(Member(one, certificate.fingerprint, certificate.pem.decode(), listens))
    return FederationFile.of(tuple(members))


def end(name, among=None, complaints=None):
    """One party's end, not started: links are made by hand."""
    messages = []
    links = StandingLinks(
        name,
        among or federation("lender"),
        credentials(name, NAMES),
        lambda sender, raw: messages.append((sender, raw)),
        lambda *_: None,
        lambda *complaint: complaints is None or complaints.append(complaint),
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


def written(link):
    """All that a link would write; it takes nothing any more."""
    link.outbox.finish()
    return list(link.outbox)


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
    links.arrived(parcel(RUN, "shop", "bank", PACKET), link)
    links.arrived(parcel(RUN, "shop", "bank", PACKET, run=b"another!"), link)
    assert run.told == [("shop", PACKET)]
    with pytest.raises(MeshError, match="under way already"):
        links.attach(run)
    links.detach(run)
    links.arrived(parcel(RUN, "shop", "bank", PACKET), link)
    assert len(run.told) == 1


def test_a_run_hears_nobody_but_its_parties(bank):
    links, link, _ = bank
    run = Heard(("lender", "bank"))
    links.attach(run)
    links.arrived(parcel(RUN, "shop", "bank", PACKET), link)
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
    links.tell("zoe", b"x")
    links.tell("shop", b"x")
    assert len(written(link)) == 1


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
    told = [msgspec.msgpack.decode(raw[HEAD.size :]) for raw in written(other)]
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


@pytest.fixture
def three(request):
    """The started ends of all parties by name, what each was told, and what each complains of."""
    among = federation("lender", *getattr(request, "param", ()))
    complaints = {name: [] for name in NAMES}
    ends = {name: end(name, among, complaints[name]) for name in NAMES}
    for links, _ in ends.values():
        links.start()
    for name, (links, _) in ends.items():
        others = [other for other in NAMES if other != name]
        until(lambda links=links, others=others: all(map(links.is_up, others)), "all are up")
    yield ends, complaints
    for links, _ in ends.values():
        links.stop()


BAD = {
    "an unknown kind": (parcel(9, "bank", "shop"), "unknown kind 9"),
    "a notice": (parcel(NOTICE, "bank", "shop"), "a notice of bank, which is not the relay"),
    "a long message": (parcel(CONTROL, "bank", "shop", b"x" * (MAX_CONTROL + 1)), "at most"),
    "a run without an envelope": (parcel(RUN, "bank", "shop", b"x"), "packet of 1 bytes"),
    "a run's unknown kind": (
        parcel(RUN, "bank", "shop", envelope.pack_head(9, 0, 1, 2, 0)),
        "packet of unknown kind 9",
    ),
}


@pytest.mark.parametrize(("raw", "said"), BAD.values(), ids=list(BAD))
def test_a_member_cannot_cut_another_off_from_the_relay(three, raw, said):
    """Passed on unchecked, such a parcel made its receiver end its link with the relay."""
    ends, complaints = three
    shop = ends["shop"][0]
    before = shop.presence()["lender"].changed
    ends["bank"][0].links["lender"].outbox.put(raw, urgent=True)
    until(lambda: complaints["lender"], "the relay says who sent it")
    time.sleep(0.2)
    assert shop.is_up("lender")
    assert shop.presence()["lender"].changed == before
    assert shop.presence()["lender"].fault == ""
    assert complaints["shop"] == []
    who, words = complaints["lender"][0]
    assert who == "bank"
    assert said in words


@pytest.mark.parametrize("three", [("shop",)], indirect=True)
def test_nor_by_the_relay_where_they_have_a_link_of_their_own(three):
    """The shop listens too, so it takes nothing of the bank from the relay."""
    ends, complaints = three
    shop = ends["shop"][0]
    before = shop.presence()["lender"].changed
    ends["bank"][0].links["lender"].outbox.put(parcel(CONTROL, "bank", "shop"), urgent=True)
    until(lambda: complaints["lender"], "the relay says who sent it")
    time.sleep(0.2)
    assert shop.presence()["lender"].changed == before
    assert "for shop, to which bank has a link of its own" in complaints["lender"][0][1]


def test_the_relay_passes_on_what_is_in_order(lender):
    link = Link("shop", False)
    lender.link_up(link)
    run = parcel(RUN, "bank", "shop", PACKET + b"closed")
    control = parcel(CONTROL, "bank", "shop", b"hello")
    lender.arrived(run, Link("bank", False))
    lender.arrived(control, Link("bank", False))
    assert written(link) == [control, run]


def test_a_member_that_sends_too_many_messages_is_not_listened_to(lender):
    """Messages beyond the limit are neither read nor passed on, and cost others nothing."""
    link, complaints = Link("shop", False), []
    lender.link_up(link)
    lender.on_nonsense = lambda *complaint: complaints.append(complaint)
    for _ in range(3000):
        lender.arrived(parcel(CONTROL, "bank", "shop", b"hello"), Link("bank", False))
    lender.arrived(parcel(CONTROL, "bank", "lender", b"hello"), Link("bank", False))
    assert 1000 <= len(written(link)) < 2000
    assert {name for name, _ in complaints} == {"bank"}
    assert "more than 1000 messages to shop in 5 s" in complaints[0][1]


def test_nor_one_that_sends_too_many_bytes(lender):
    link = Link("shop", False)
    lender.link_up(link)
    long = parcel(CONTROL, "bank", "shop", b"x" * MAX_CONTROL)
    for _ in range(400):
        lender.arrived(long, Link("bank", False))
    assert 100 < len(written(link)) < 200
