"""Links whose owner fails: the link ends, is told of, and is dialled again."""

from __future__ import annotations

import threading

import pytest

from tests.conformance.networks import credentials, free_port
from vertikal.errors import MeshError
from vertikal.mesh.network_links import Dialler, Greeting, Listener

SECONDS = 20.0


class Owner:
    """Remembers what its links told, and fails the first time at what it is told to fail at."""

    def __init__(self, me, fails_at=""):
        self.me = me
        self.parties = ("a", "b")
        self.greeting = Greeting(me, me.encode())
        self.fails_at = fails_at
        self.told = []
        self.up = threading.Semaphore(0)
        self.heard = threading.Event()
        self.blamed = threading.Event()

    def _tell(self, what, argument):
        self.told.append((what, argument))
        if self.fails_at == what:
            self.fails_at = ""
            raise KeyError(what)

    def admit(self, name, session):
        pass

    def link_up(self, link):
        self._tell("up", link)
        self.up.release()

    def link_down(self, link):
        self._tell("down", link)

    def arrived(self, raw, link):
        self.heard.set()
        self._tell("arrived", link)

    def blame(self, name, error):
        self.blamed.set()
        self._tell("blame", error)

    def restarted(self, name):
        return MeshError("never here")

    def links(self, what):
        return [argument for told, argument in self.told if told == what]


@pytest.fixture
def pair():
    """A listening party a, and b that dials it once ``b.start()`` is called."""
    a, b = Owner("a"), Owner("b")
    address = f"127.0.0.1:{free_port()}"
    listener = Listener(a, address, credentials("a", "ab"), plaintext=True)
    dialler = Dialler(b, "a", address, credentials("b", "ab"), plaintext=True)
    listener.start()
    yield a, b, dialler
    dialler._stopped.set()
    for link in (*b.links("up"), *a.links("up")):
        link.close()
    dialler.stop()
    listener.stop()


@pytest.mark.parametrize("where", ["up", "arrived", "down"])
def test_an_owner_that_fails_is_told_of_its_broken_link(pair, where, capsys):
    a, b, dialler = pair
    b.fails_at = where
    dialler.start()
    if where == "arrived":
        assert a.up.acquire(timeout=SECONDS)
        a.links("up")[0].outbox.put(b"x", urgent=True)
    elif where == "down":
        assert a.up.acquire(timeout=SECONDS)
        assert b.up.acquire(timeout=SECONDS)
        a.links("up")[0].close()
    assert b.blamed.wait(SECONDS)
    ((_, error),) = [one for one in b.told if one[0] == "blame"]
    assert str(error) == f"b: the link to a failed here: KeyError: '{where}'"
    (link,) = b.links("down")
    assert list(link.outbox) == []
    assert "KeyError" in capsys.readouterr().err


def test_an_owner_that_cannot_be_told_is_dialled_for_again(pair, monkeypatch):
    a, b, dialler = pair
    b.fails_at = "arrived"
    told = b.blame

    def blame(name, error):
        told(name, error)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(b, "blame", blame)
    dialler.start()
    assert a.up.acquire(timeout=SECONDS)
    a.links("up")[0].outbox.put(b"x", urgent=True)
    assert a.up.acquire(timeout=SECONDS)
    assert b.blamed.is_set()


def test_a_listening_owner_that_fails_gets_another_link(pair):
    a, b, dialler = pair
    a.fails_at = "up"
    dialler.start()
    assert a.up.acquire(timeout=SECONDS)
    first, second = a.links("up")
    assert a.links("down")[0] is first
    assert list(first.outbox) == []
    b.up.acquire(timeout=SECONDS)
    b.links("up")[-1].outbox.put(b"x", urgent=True)
    assert a.heard.wait(SECONDS)
    assert a.links("arrived") == [second]
