"""Links whose mesh fails or whose connection is dead: they end, and are dialled again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from tests.conformance.networks import credentials, identity
from tests.conformance.proxy import Proxy
from tests.ports import free_port
from tests.waiting import until
from vertikal.errors import MeshError, NameTaken, WireError
from vertikal.mesh import network_links
from vertikal.mesh.network_links import Dialler, Greeting, Listener
from vertikal.secure.keys.credentials import Credentials
from vertikal.secure.keys.identity import Identity

SECONDS = 20.0
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT


class LinkedMesh:
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
        self.missed = threading.Event()

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

    def unreachable(self, name, reason):
        self.missed.set()
        self._tell("unreachable", reason)

    def blame(self, name, error):
        self.blamed.set()
        self._tell("blame", error)

    def restarted(self, name):
        return MeshError("never here")

    def links(self, what):
        return [argument for told, argument in self.told if told == what]


class Freezing:
    """Lets everything pass until it is told to hold the connections that there are."""

    def __init__(self):
        self.seen = set()
        self.frozen = set()
        self.ended = threading.Event()

    def __call__(self, piece):
        me = threading.get_ident()
        self.seen.add(me)
        if me in self.frozen:
            self.ended.wait(300.0)
        return piece


@pytest.fixture
def pair(monkeypatch):
    """A listening party a, and b that dials it once its dialler is started."""
    # What is on its way at the end is nobody's: there is no need to wait for it.
    monkeypatch.setattr(network_links, "FLUSH", 0.05)
    a, b = LinkedMesh("a"), LinkedMesh("b")
    listener = Listener(a, "127.0.0.1:0", credentials("a", "ab"), plaintext=True)
    a.address = f"127.0.0.1:{listener.port}"
    dialler = Dialler(b, "a", a.address, credentials("b", "ab"), plaintext=True)
    listener.start()
    yield a, b, dialler
    dialler.stop()
    for link in (*b.links("up"), *a.links("up")):
        link.close()
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
    for _ in range(100):
        # The dialling end may hear of its own new link a little later.
        b.links("up")[-1].outbox.put(b"x", urgent=True)
        if a.heard.wait(0.1):
            break
    assert a.links("arrived")[0] is second


def test_dead_connections_are_noticed_within_two_minutes():
    options = dict(network_links.OPTIONS)
    every, answer = options["grpc.keepalive_time_ms"], options["grpc.keepalive_timeout_ms"]
    # The silence of a whole interval has to pass, which may have begun just before.
    assert 2 * every + answer < 120_000
    assert options["grpc.http2.ping_timeout_ms"] == answer
    assert options["grpc.keepalive_permit_without_calls"] == 1
    assert options["grpc.http2.max_pings_without_data"] == 0
    # Otherwise the listening end hangs up on one that pings as often as it is told to.
    assert options["grpc.http2.min_ping_interval_without_data_ms"] < every


@pytest.mark.slow
def test_a_connection_that_died_without_a_word_is_dialled_again():
    a, b, freezing = LinkedMesh("a"), LinkedMesh("b"), Freezing()
    port = free_port()
    listener = Listener(a, f"127.0.0.1:{port}", credentials("a", "ab"), plaintext=True)
    proxy = Proxy(port, spoil=freezing)
    address = f"127.0.0.1:{proxy.port}"
    dialler = Dialler(b, "a", address, credentials("b", "ab"), plaintext=True)
    listener.start()
    dialler.start()
    try:
        assert b.up.acquire(timeout=SECONDS)
        freezing.frozen = set(freezing.seen)
        assert b.up.acquire(timeout=110.0)
        first, second = b.links("up")
        assert b.links("down") == [first]
        second.outbox.put(b"x", urgent=True)
        assert a.heard.wait(SECONDS)
    finally:
        freezing.ended.set()
        dialler.stop()
        for link in (*b.links("up"), *a.links("up")):
            link.close()
        listener.stop()
        proxy.close()


@contextmanager
def dialling(serve):
    """A party b that dials a server of which each stream is answered by ``serve(context)``."""
    calls = threading.Semaphore(0)

    def link(requests, context):
        calls.release()
        serve(context)
        yield b""

    server = grpc.server(ThreadPoolExecutor(8))
    handler = grpc.stream_stream_rpc_method_handler(link)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("vertikal.Mesh", {"Link": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    b = LinkedMesh("b")
    dialler = Dialler(b, "a", f"127.0.0.1:{port}", credentials("b", "ab"), plaintext=True)
    dialler.start()
    try:
        yield b, calls
    finally:
        dialler.stop()
        server.stop(0)


def test_a_listening_party_that_never_greets_is_dialled_again(monkeypatch):
    monkeypatch.setattr(network_links, "GREETING", 0.1)
    ended = threading.Event()
    with dialling(lambda context: ended.wait(SECONDS)) as (b, calls):
        for _ in range(3):
            assert calls.acquire(timeout=SECONDS)
        assert not b.blamed.is_set()
        ended.set()


def test_a_refusal_that_may_pass_is_dialled_again():
    with dialling(lambda context: context.abort(UNAVAILABLE, "NameTaken: later")) as (b, calls):
        for _ in range(3):
            assert calls.acquire(timeout=SECONDS)
        assert not b.blamed.is_set()


@pytest.mark.parametrize(
    ("code", "named", "kind"),
    [
        (UNAUTHENTICATED, "NameTaken", NameTaken),
        (INVALID_ARGUMENT, "WireError", WireError),
        # Names that the module of errors has for something else, and one that it does not have.
        (UNAUTHENTICATED, "annotations", MeshError),
        (UNAUTHENTICATED, "InputError", MeshError),
        (UNAUTHENTICATED, "Nonsense", MeshError),
    ],
)
def test_a_refusal_is_raised_as_the_error_that_it_names_if_it_is_one_of_a_mesh(code, named, kind):
    with dialling(lambda context: context.abort(code, f"{named}: two of you")) as (b, _):
        assert b.blamed.wait(SECONDS)
    ((_, error),) = b.told[1:]
    assert type(error) is kind
    assert str(error) == "b: a refused this party: two of you"


def test_who_dials_and_never_greets_is_let_go(pair, monkeypatch):
    monkeypatch.setattr(network_links, "GREETING", 0.1)
    a, _, dialler = pair
    dialler.start()
    silence = threading.Event()

    def nothing():
        silence.wait(SECONDS)
        yield from ()

    with grpc.insecure_channel(a.address) as channel:
        stream = channel.stream_stream("/vertikal.Mesh/Link")(nothing())
        with pytest.raises(grpc.RpcError):
            next(stream)
    silence.set()


def test_other_keys_count_from_the_next_connection_on():
    """A listening party takes up a dialling one's new key, and the link that stands stays."""
    old, new = credentials("b", "ab"), Identity.create("b")
    renewed = {"a": identity("a").certificate, "b": new.certificate}
    a, b = LinkedMesh("a"), LinkedMesh("b")
    listener = Listener(a, "127.0.0.1:0", credentials("a", "ab"), plaintext=False)
    dialler = Dialler(b, "a", f"127.0.0.1:{listener.port}", old, plaintext=False)
    listener.start()
    dialler.start()
    try:
        assert a.up.acquire(timeout=SECONDS)
        listener.trust(Credentials(identity("a"), renewed))
        dialler.trust(Credentials(new, renewed))
        assert a.links("down") == []
        a.links("up")[0].close()
        assert a.up.acquire(timeout=SECONDS)
        dialler.trust(old)
        a.links("up")[1].close()
        assert not a.up.acquire(timeout=1.0)
    finally:
        dialler.stop()
        for link in (*b.links("up"), *a.links("up")):
            link.close()
        listener.stop()


def test_tls_is_given_new_keys_once(monkeypatch):
    """gRPC replaces its keys by any answer but None, while other connections are using them."""
    asked = []
    original = grpc.dynamic_ssl_server_credentials

    def watched(first, fetch, **options):
        asked.append(fetch)
        return original(first, fetch, **options)

    monkeypatch.setattr(grpc, "dynamic_ssl_server_credentials", watched)
    listener = Listener(LinkedMesh("a"), "127.0.0.1:0", credentials("a", "ab"), plaintext=False)
    try:
        (fetch,) = asked
        assert [fetch(), fetch()] == [None, None]
        listener.trust(credentials("a", "ab"))
        assert fetch() is not None
        assert fetch() is None
    finally:
        listener.stop()


@contextmanager
def dialling_at(mesh, address):
    dialler = Dialler(mesh, "a", address, credentials("b", "ab"), plaintext=False)
    dialler.start()
    try:
        yield
    finally:
        dialler.stop()


def test_a_port_at_which_nobody_listens_is_told(monkeypatch):
    monkeypatch.setattr(network_links, "EXPLAIN_AFTER", 1)
    b, address = LinkedMesh("b"), f"127.0.0.1:{free_port()}"
    with dialling_at(b, address):
        assert b.missed.wait(SECONDS)
    assert b.links("unreachable")[0] == f"connection refused at {address}, trying again"


def test_what_else_goes_wrong_is_not_called_a_refusal(monkeypatch):
    """Somebody listens who says nothing, or the host has no address."""
    monkeypatch.setattr(network_links, "EXPLAIN_AFTER", 1)
    asked = []

    def explain(self, address, peer):
        asked.append(address)

    monkeypatch.setattr(Credentials, "explain", explain)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setattr(network_links, "GREETING", 0.2)
        for address in (f"127.0.0.1:{mute.getsockname()[1]}", "nobody.invalid:9"):
            b = LinkedMesh("b")
            with dialling_at(b, address):
                until(lambda one=address: asked.count(one) > 1, "dialled again")
            assert b.links("unreachable") == []


def test_grpc_leaves_children_of_a_party_alone():
    """Its handlers of a fork would abort some of them before they are another program."""
    asked = "import os, vertikal.mesh.network_links; print(os.environ['GRPC_ENABLE_FORK_SUPPORT'])"
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env=bare,
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "0\n"
