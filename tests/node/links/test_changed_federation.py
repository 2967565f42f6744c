"""Standing links under a federation file that changes: real TLS, new keys, removed members."""

from __future__ import annotations

import threading

import pytest

from tests.conformance.networks import identity
from tests.node.links.test_standing_links import Heard
from tests.ports import free_port
from tests.waiting import until
from vertikal.mesh.network_links import Dialler, Greeting
from vertikal.node.config.federation_changes import remove, rotate
from vertikal.node.config.federation_file import FederationFile, Member
from vertikal.node.links.standing_links import StandingLinks
from vertikal.secure.keys.identity import Identity

NAMES = ("lender", "bank", "shop", "clinic")


def founded(*listening):
    members = []
    for name in NAMES:
        certificate = identity(name).certificate
        listens = f"127.0.0.1:{free_port()}" if name in listening else None
        members.append(Member(name, certificate.fingerprint, certificate.pem.decode(), listens))
    return FederationFile.of(tuple(members))


class Ends:
    """The links of all parties, in one process."""

    def __init__(self, *listening):
        self.file = founded(*listening)
        self.identities = {name: identity(name) for name in NAMES}
        self.messages = []
        self.links = {
            name: StandingLinks(
                name,
                self.file,
                self.file.credentials(identity(name)),
                lambda sender, raw, me=name: self.messages.append((sender, me, raw)),
                lambda *_: None,
                lambda *_: None,
            )
            for name in NAMES
        }
        for one in self.links.values():
            one.start()

    def change(self, change, *adopting):
        self.file = self.file.with_change(change)
        for name in adopting or self.file.names:
            credentials = self.file.credentials(self.identities[name])
            self.links[name].adopt(self.file, credentials)

    def rotate(self, name):
        new = Identity.create(name)
        change = rotate(self.file.root, self.identities[name], new.certificate)
        self.identities[name] = new
        self.change(change)

    def remove(self, *names):
        remaining = [name for name in NAMES if name not in names]
        proposer = self.identities[remaining[0]]
        change = remove(self.file.root, self.file.names, names, proposer)
        for name in remaining[1:]:
            change = change.signed_by(self.identities[name])
        self.change(change)

    def connected(self, *names):
        for one in names:
            for other in names:
                if one != other:
                    until(lambda a=one, b=other: self.links[a].is_up(b), f"{one} has {other}")

    def reach(self, sender, receiver, words):
        """Tell it until it arrives: a link may be on its way."""

        def arrived():
            self.links[sender].tell(receiver, words)
            return (sender, receiver, words) in self.messages

        until(arrived, f"{receiver} hears {sender}")


@pytest.fixture
def make():
    made = []

    def of(*listening):
        ends = Ends(*listening)
        made.append(ends)
        ends.connected(*NAMES)
        return ends

    yield of
    for ends in made:
        for one in ends.links.values():
            one.stop()


def changes_of(links, name):
    return links.presence()[name].changed


@pytest.mark.parametrize("party", ["bank", "lender"])
def test_links_come_back_under_a_new_key(make, party):
    """Of a party that dials, and of the one that listens and relays."""
    ends = make("lender")
    run = Heard()
    ends.links["bank"].attach(run)
    ends.rotate(party)
    ends.connected(*NAMES)
    ends.reach("bank", "shop", b"hello")
    ends.reach("shop", "bank", b"hello")
    ends.reach("lender", "clinic", b"hello")
    # The processes are the same: nothing of a run is lost.
    assert not any(what == "restarted" for what, _ in run.told)


class Thief:
    """A mesh in the bank's name with the bank's old key."""

    me = "bank"
    parties = NAMES
    greeting = Greeting("bank", b"thief")

    def __init__(self):
        self.up = threading.Event()
        self.down = threading.Event()
        self.blamed = threading.Event()

    def link_up(self, link):
        self.up.set()

    def link_down(self, link):
        self.down.set()

    def unreachable(self, name, reason):
        pass

    def blame(self, name, error):
        self.error = error
        self.blamed.set()


@pytest.mark.parametrize("change", ["rotate", "remove"])
def test_the_old_key_is_refused_from_then_on(make, change):
    ends = make("lender")
    old = ends.file
    address = old.member("lender").listens
    getattr(ends, change)("bank")
    thief = Thief()
    dialler = Dialler(thief, "lender", address, old.credentials(identity("bank")), plaintext=False)
    dialler.start()
    try:
        assert thief.blamed.wait(20)
        assert not thief.up.is_set()
        assert "its federation file does not list" in str(thief.error)
    finally:
        dialler.stop()


def test_a_removed_member_is_cut_off_and_its_runs_are_told(make):
    ends = make("lender")
    removed, kept = Heard(("bank", "shop")), Heard(("bank", "lender"))
    kept.run = b"87654321"
    for run in (removed, kept):
        ends.links["bank"].attach(run)
    # What lies ready for it is still sent.
    ends.links["lender"].tell("shop", b"farewell")
    ends.remove("shop")
    until(lambda: ("lender", "shop", b"farewell") in ends.messages, "farewell")
    until(lambda: not ends.links["shop"].is_up("lender"), "cut off")
    assert removed.told == [("removed", "shop")]
    assert kept.told == []
    assert set(ends.links["lender"].presence()) == {"bank", "clinic"}
    assert not ends.links["lender"].is_up("shop")
    ends.links["bank"].tell("shop", b"never sent")
    ends.reach("bank", "clinic", b"hello")
    assert ("bank", "shop", b"never sent") not in ends.messages


@pytest.mark.parametrize("first", ["lender", "bank"])
def test_parties_that_hear_of_a_removal_one_after_the_other_stay_connected(make, first):
    """Messages to the removed member or from it are dropped, and no others."""
    ends = make("lender")
    change = remove(ends.file.root, NAMES, ("shop",), identity("lender"))
    for name in ("bank", "clinic"):
        change = change.signed_by(identity(name))
    ends.change(change, first)
    before = changes_of(ends.links["bank"], "lender")
    ends.links["shop"].tell("bank", b"I am here")
    ends.links["bank"].tell("shop", b"anybody?")
    ends.reach("bank", "clinic", b"hello")
    ends.reach("lender", "bank", b"hello")
    assert changes_of(ends.links["bank"], "lender") == before
    assert ("bank", "shop", b"anybody?") not in ends.messages
    if first == "bank":
        assert ("shop", "bank", b"I am here") not in ends.messages


def test_another_party_relays_when_the_relay_is_removed(make):
    ends = make("lender", "bank")
    assert ends.links["shop"].relay == "lender"
    ends.remove("lender")
    assert ends.links["shop"].relay == "bank"
    ends.connected("bank", "shop", "clinic")
    ends.reach("shop", "clinic", b"hello")
    ends.reach("clinic", "shop", b"hello")


def test_a_relay_that_announces_itself_before_a_party_listens(make):
    """The announcement comes while the shop goes by the new file, and is not the last word."""
    ends = make("lender", "bank")
    change = remove(ends.file.root, NAMES, ("lender",), identity("bank"))
    for name in ("shop", "clinic"):
        change = change.signed_by(identity(name))

    class Slow(Heard):
        def peer_removed(self, name):
            ends.change(change, "bank", "clinic")
            ends.connected("bank", "clinic")
            ends.reach("bank", "shop", b"after the announcement")

    before = ends.file
    ends.links["shop"].attach(Slow(("lender", "shop")))
    ends.links["shop"].adopt(
        before.with_change(change), before.with_change(change).credentials(identity("shop"))
    )
    ends.connected("bank", "shop", "clinic")
    ends.reach("shop", "clinic", b"hello")
    ends.reach("clinic", "shop", b"hello")
