"""The network mesh: links that break, a relay that reads nothing, and who is refused how."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import grpc
import msgspec
import numpy as np
import pytest

from tests.conformance.networks import (
    certificates,
    credentials,
    end,
    identity,
    network,
    star_of,
)
from tests.conformance.proxy import Proxy
from tests.conformance.running import join, run, start
from tests.ports import free_port
from vertikal.errors import (
    AgreementError,
    CertificateMismatch,
    CertificateUnknown,
    DeadlineExceeded,
    IdentityError,
    InputError,
    MeshError,
    NameTaken,
    PartyUnknown,
    PeerStopped,
    WireError,
)
from vertikal.mesh import network_links
from vertikal.mesh.network import NetworkMesh
from vertikal.mesh.network_links import Greeting, Link, Outbox, read_greeting
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.packet_mesh import Timing
from vertikal.secure.keys.credentials import Credentials
from vertikal.secure.keys.identity import Identity

QUICK = Timing(heartbeat=0.1, silence=0.6, patience=1.5)
"""Gives up soon: for tests about giving up."""
STEADY = Timing(heartbeat=0.1, silence=0.6, patience=60.0)


@contextmanager
def parties(names, addresses=None, **options):
    """Ends that are taken down at the end; more may be added to the dictionary."""
    addresses = addresses or star_of(names)
    ends = {}
    try:
        for name in names:
            ends[name] = end(name, addresses, **options)
        yield ends, addresses
    finally:
        for one in ends.values():
            one.stop(0.0)


@contextmanager
def behind_proxy(names=("a", "b", "c"), behind=("b",), **options):
    """The first party listens; those ``behind`` reach it through a proxy."""
    timing = options.pop("timing", STEADY)
    addresses = star_of(names)
    port = int(addresses[names[0]].rpartition(":")[2])
    with ExitStack() as stack:
        proxy = Proxy(port, **options)
        stack.callback(proxy.close)
        detour = {**addresses, names[0]: f"127.0.0.1:{proxy.port}"}
        ends = {}
        for name in names:
            seen = detour if name in behind else addresses
            ends[name] = end(name, seen, timing=timing)
            stack.callback(ends[name].stop, 0.0)
        for one in ends.values():
            one.connect()
        yield ends, proxy


def stream_of(ends, sender, receiver, count, size=1000, pause=0.0):
    """Send numbered arrays one way and read them at the other end."""

    def send(mesh):
        for i in range(count):
            mesh.send(receiver, "x", np.full(size, i, np.int32))
            time.sleep(pause)

    def receive(mesh):
        return [int(mesh.recv(sender, "x")[-1]) for _ in range(count)]

    return run(ends, {sender: send, receiver: receive}).unwrap()[receiver]


@pytest.mark.parametrize("order", ["abc", "cba", "bac"])
def test_start_order_does_not_matter(order):
    addresses = star_of("abc")
    ends = {}
    try:
        for name in order:
            ends[name] = end(name, addresses)
            time.sleep(0.15)
        got = run(ends, lambda mesh: [mesh.send(peer, "x", {}) for peer in mesh.peers])
        assert not got.errors
        for mesh in ends.values():
            for peer in mesh.peers:
                assert mesh.recv(peer, "x") == {}
    finally:
        for one in ends.values():
            one.stop(0.0)


@pytest.mark.parametrize(("sender", "receiver"), [("b", "a"), ("a", "b"), ("b", "c"), ("c", "b")])
def test_cut_links_lose_repeat_and_reorder_nothing(sender, receiver, monkeypatch):
    # A link that is cut again and again is dialled less and less often: here never much later.
    monkeypatch.setattr(network_links, "RETRY", (0.05, 0.1))
    with behind_proxy() as (ends, proxy):
        stop = threading.Event()

        def cutting():
            last = proxy.passed
            while not stop.wait(0.01):
                # However slow the machine is, something gets through between two cuts.
                if proxy.passed > last + 300_000:
                    proxy.cut()
                    last = proxy.passed

        thread = start("cutting", cutting)
        got = stream_of(ends, sender, receiver, 60, 20_000, pause=0.01)
        stop.set()
        join([thread])
        assert proxy.cuts >= 3
    assert got == list(range(60))


def test_a_link_cut_in_the_middle_of_a_chunk():
    sent = np.arange(6 << 17, dtype=np.uint64)
    with behind_proxy() as (ends, proxy):
        proxy.cut_after = proxy.passed + (5 << 19)
        got = run(
            ends, {"b": lambda m: m.send("c", "x", sent), "c": lambda m: m.recv("b", "x")}
        ).unwrap()
        assert proxy.cuts == 1
    assert np.array_equal(got["c"], sent)


class Once:
    """Spoils one large piece of what travels, in a way of its own."""

    def __init__(self, way):
        self.way, self.held, self.done = way, b"", False

    def __call__(self, piece):
        held, self.held = self.held, b""
        if self.done or len(piece) <= 10_000:
            return piece + held
        self.done = True
        match self.way:
            case "changed":
                return piece[:5000] + bytes([piece[5000] ^ 1]) + piece[5001:]
            case "dropped":
                return piece[:5000] + piece[5001:]
            case "all dropped":
                return b""
            case "repeated":
                return piece + piece
            case "inserted":
                return piece[:5000] + bytes(100) + piece[5000:]
            case "swapped":
                return piece[5000:] + piece[:5000]
            case _:
                # Comes out after the next piece.
                self.held = piece
                return b""


@pytest.mark.parametrize(
    "way", ["changed", "dropped", "all dropped", "repeated", "inserted", "swapped", "reordered"]
)
@pytest.mark.parametrize("receiver", ["a", pytest.param("c", marks=pytest.mark.slow)])
def test_bytes_spoiled_on_the_way_are_noticed_by_tls_and_nothing_is_lost(way, receiver):
    sent = np.arange(1 << 18, dtype=np.uint64)
    with behind_proxy() as (ends, proxy):
        proxy.spoil = Once(way)
        program = {
            "b": lambda m: m.send(receiver, "x", sent),
            receiver: lambda m: m.recv("b", "x"),
        }
        got = run(ends, program).unwrap()
        assert proxy.spoil.done
        assert stream_of(ends, "b", receiver, 3) == [0, 1, 2]
    assert np.array_equal(got[receiver], sent)


def test_a_slow_and_distant_link_only_takes_longer():
    """50 ms each way, 20 Mb/s: nothing is given up, nothing is lost."""
    sent = np.arange(1 << 16, dtype=np.uint64)
    with behind_proxy(delay=0.05, rate=2.5e6) as (ends, proxy):
        began = time.monotonic()
        got = run(
            ends, {"b": lambda m: m.send("c", "x", sent), "c": lambda m: m.recv("b", "x")}
        ).unwrap()
        assert time.monotonic() - began > sent.nbytes / 2.5e6
        assert proxy.cuts == 0
    assert np.array_equal(got["c"], sent)


def test_a_party_whose_link_stays_broken_is_given_up_by_name():
    with behind_proxy(timing=QUICK) as (ends, proxy):
        ends["b"].doing = "phases"
        time.sleep(0.3)
        proxy.refusing = True
        proxy.cut()
        began = time.monotonic()
        errors = run(
            ends, {"a": lambda m: m.recv("b", "x", 40.0), "c": lambda m: m.recv("b", "y", 40.0)}
        ).errors
        took = time.monotonic() - began
    assert 1.0 < took < 30.0
    # The first to give up tells the other; both are about b.
    first = next(iter(errors.values()))
    assert isinstance(first, PeerStopped)
    assert "the connection to b broke" in str(first)
    assert "b is not connected, last heard of" in str(first)
    assert "doing phases" in str(first)


def test_a_frozen_party_is_noticed_and_may_come_back():
    with behind_proxy() as (ends, proxy):
        ends["b"].doing = "solve"
        time.sleep(0.3)
        with proxy.frozen():
            time.sleep(1.0)
            standing = ends["c"].status()["b"]
            assert standing.link == "silent"
            assert standing.quiet > 0.6
            with pytest.raises(DeadlineExceeded, match="b is connected but silent for") as caught:
                ends["c"].recv("b", "x", 0.2)
            assert "doing solve" in str(caught.value)
        until = time.monotonic() + 20.0
        while ends["c"].status()["b"].link != "up":
            assert time.monotonic() < until
            time.sleep(0.05)
        assert stream_of(ends, "b", "c", 3) == [0, 1, 2]


def test_a_slow_party_is_not_dead():
    with behind_proxy() as (ends, _):
        thread = start("b", lambda: (time.sleep(1.3), ends["b"].send("c", "x", {"late": 1})))
        assert ends["c"].recv("b", "x", 10.0) == {"late": 1}
        join([thread])


def test_the_chain_of_waits_is_told_and_followed():
    with behind_proxy() as (ends, _):
        ends["a"].doing = "solve"

        def waiting():
            with pytest.raises(PeerStopped):
                ends["b"].recv("a", "deep", 30.0)

        thread = start("b", waiting)
        time.sleep(0.4)
        with pytest.raises(DeadlineExceeded) as caught:
            ends["c"].recv("b", "sum", 0.3)
        text = str(caught.value)
        assert text.index("c waits for b ('sum')") < text.index("b waits for a ('deep', ")
        assert text.endswith("doing solve")
        with pytest.raises(DeadlineExceeded, match=r"b waits for a \('deep'"):
            ends["a"].recv("b", "more", 0.3)
        ends["c"].fail("over")
        join([thread])


def test_the_relay_reads_nothing(monkeypatch):
    """All that the relay passes on is recorded; the same message on a direct link is readable."""
    secret = np.frombuffer(b"the quick brown fox " * 500, np.uint8)
    seen = []
    arrived = NetworkMesh.arrived

    def recording(self, raw, link):
        if self.me == "a":
            seen.append((link.peer, envelope.unpack(raw, 3), bytes(raw)))
        arrived(self, raw, link)

    monkeypatch.setattr(NetworkMesh, "arrived", recording)
    ends, cleanup = network("abc", 20.0)
    try:
        ends["b"].doing = "quick brown stage"
        ends["b"].send("c", "secret tag", secret)
        assert np.array_equal(ends["c"].recv("b", "secret tag"), secret)
        ends["b"].fail("brown fox failed")
        with pytest.raises(PeerStopped, match="brown fox failed"):
            ends["c"].recv("b", "more")
        relayed = [raw for _, packet, raw in seen if (packet.sender, packet.receiver) == (1, 2)]
        kinds = {envelope.unpack(raw, 3).kind for raw in relayed}
        assert kinds == {envelope.HELLO, envelope.DATA, envelope.STATE}
        for raw in relayed:
            assert b"brown" not in raw
            assert b"secret tag" not in raw
        data = b"".join(r for r in relayed if envelope.unpack(r, 3).kind == envelope.DATA)
        assert len(data) > len(secret)
        counts = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        assert counts.max() < 4 * counts.mean()
    finally:
        cleanup()
    seen.clear()
    ends, cleanup = network("abc", 20.0)
    try:
        ends["b"].send("a", "secret tag", secret)
        ends["a"].recv("b", "secret tag")
        assert any(b"quick brown fox" in raw for _, _, raw in seen)
    finally:
        cleanup()


@pytest.mark.parametrize("kind", [envelope.DATA, envelope.STATE])
def test_a_relay_that_changes_a_bit_is_found_out(monkeypatch, kind):
    arrived = NetworkMesh.arrived

    def tampering(self, raw, link):
        packet = envelope.unpack(raw, 3)
        if self.me == "a" and packet.receiver == 2 and packet.kind == kind and packet.number > 1:
            raw = raw[:-20] + bytes([raw[-20] ^ 1]) + raw[-19:]
        arrived(self, raw, link)

    monkeypatch.setattr(NetworkMesh, "arrived", tampering)
    ends, cleanup = network("abc", 5.0)
    try:
        for _ in range(4):
            ends["b"].send("c", "x", np.zeros(100))
        with pytest.raises(MeshError, match=r"c: a message of b: it was changed on its way"):
            [ends["c"].recv("b", "x") for _ in range(5)]
    finally:
        cleanup()


def test_a_message_given_up_half_way_leaves_no_number_used_twice():
    """A message that was encrypted is sent; a wait that fails comes before the encryption."""
    with behind_proxy(behind=("c",)) as (ends, proxy):
        ends["b"].deadline = 0.5
        with (
            proxy.frozen(),  # c takes nothing
            pytest.raises(DeadlineExceeded, match="nothing from c for room for 'large'"),
        ):
            ends["b"].send("c", "large", np.zeros(40 << 20, np.uint8))
        ends["b"].deadline = 20.0
        assert stream_of(ends, "b", "c", 3) == [0, 1, 2]


def test_a_sender_behind_a_relay_cannot_write_in_anothers_name():
    with parties("abc") as (ends, _):
        for one in ends.values():
            one.connect()
        link = Link("b", False)
        forged = envelope.pack_head(envelope.DATA, 3, 2, 0, 0) + b"x"
        with pytest.raises(WireError, match="a packet from c over the link of b"):
            ends["a"].arrived(forged, link)
        lost = envelope.pack_head(envelope.DATA, 3, 0, 2, 0) + b"x"
        with pytest.raises(WireError, match="a packet for c at b, which relays nothing"):
            ends["b"].arrived(lost, Link("a", True))


def refused(kind, name, addresses, security, match, **options):
    options = {"job": "job", "version": "1", "deadline": 30.0, **options}
    mesh = NetworkMesh(name, addresses, security, **options)
    began = time.monotonic()
    try:
        with pytest.raises(kind, match=match):
            mesh.connect()
        with pytest.raises(kind):
            mesh.send(mesh.peers[0], "x", {})
    finally:
        mesh.stop(0.0)
    assert time.monotonic() - began < 30.0


def test_an_unknown_certificate_is_refused_on_both_sides():
    with parties("a", star_of("abc")) as (_, addresses):
        stranger = Identity.create("b")
        mine = {**certificates("abc"), "b": stranger.certificate}
        refused(
            CertificateUnknown,
            "b",
            addresses,
            Credentials(stranger, mine),
            r"b: a at .* hangs up on the certificate of 'b'.* does not list sha256:",
        )
        other = {**certificates("abc"), "a": Identity.create("a").certificate}
        refused(
            CertificateUnknown,
            "b",
            addresses,
            Credentials(identity("b"), other),
            r"b: the certificate shown for 'a' has the fingerprint",
        )


def test_a_certificate_under_another_name_is_refused():
    with parties("a", star_of("abc")) as (_, addresses):
        refused(
            CertificateMismatch,
            "b",
            addresses,
            credentials("c", "abc"),
            r"b: a refused this party: 'c' showed its certificate under the name 'b'",
        )


def test_a_name_that_is_not_in_the_file_is_refused():
    with parties("a", star_of("abc")) as (_, addresses):
        names = {"zoe": None, **addresses}
        security = Credentials(
            identity("b"), {**certificates("abc"), "zoe": identity("zoe").certificate}
        )
        refused(PartyUnknown, "zoe", names, security, r"'zoe' is not in the federation file")
    with pytest.raises(PartyUnknown, match=r"'zoe' is not in the federation file; listed are"):
        Credentials(identity("zoe"), certificates("abc"))


def test_a_party_of_the_federation_that_is_not_in_the_job_is_refused():
    security = Credentials(identity("a"), certificates("abcd"))
    addresses = star_of("abc")
    listening = NetworkMesh("a", addresses, security, job="job", version="1")
    try:
        security = Credentials(identity("c"), certificates("abcd"))
        with pytest.raises(IdentityError, match="'d' is not another party of this job"):
            listening.admit("d", b"")
    finally:
        listening.stop(0.0)


def test_two_processes_that_claim_one_name():
    with parties("abc", timing=QUICK) as (ends, addresses):
        for one in ends.values():
            one.connect()
        refused(
            NameTaken,
            "b",
            addresses,
            credentials("b", "abc"),
            r"b: a refused this party: two processes claim the name 'b': another one is connected",
        )
        assert stream_of(ends, "b", "c", 3) == [0, 1, 2]
        ends.pop("b").stop(0.0)
        time.sleep(0.3)
        refused(
            NameTaken,
            "b",
            addresses,
            credentials("b", "abc"),
            r"another one was connected before in this job",
        )


def test_a_listening_party_that_is_started_again_has_lost_its_part():
    with behind_proxy("ab") as (ends, proxy):
        proxy.refusing = True  # b hears nothing of the end, as if a had been killed
        proxy.cut()
        address = f"127.0.0.1:{ends['a'].port}"
        ends["a"].stop(0.0)
        proxy.refusing = False
        with (
            parties("a", {"a": address, "b": None}),
            pytest.raises(PeerStopped, match="b: a was started again and has lost its part"),
        ):
            ends["b"].recv("a", "x", 30.0)


def test_the_second_party_on_a_port_is_told_so():
    with (
        parties("a", star_of("ab")) as (_, addresses),
        pytest.raises(InputError, match=r"a: cannot listen at 127.* \(was this party"),
    ):
        end("a", addresses)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"version": "2"}, r"library version is '1' here and '2' at b"),
        ({"job": "other"}, r"job is 'job' here and 'other' at b"),
        ({"capacity": 10}, r"capacity is 67108864 here and 10 at b"),
    ],
)
def test_another_version_or_job_is_refused_before_any_data(options, match):
    addresses = star_of("abc")
    ends = {"a": end("a", addresses), "c": end("c", addresses)}
    try:
        ends["b"] = end("b", addresses, **options)
        for name, peer in (("a", "b"), ("c", "b")):
            with pytest.raises(AgreementError, match=rf"{name}: {match}"):
                ends[name].recv(peer, "x", 10.0)
        with pytest.raises(AgreementError, match=r"b: .* here and .* at [ac]"):
            ends["b"].send("c", "x", {})
        assert ends["b"].traffic.frames_sent == 0
    finally:
        for one in ends.values():
            one.stop(0.0)


def test_another_federation_file_is_refused():
    addresses = star_of("ab")
    a = end("a", addresses)
    stranger = {**certificates("ab"), "c": Identity.create("c").certificate}
    security = Credentials(identity("b"), stranger)
    b = NetworkMesh("b", {**addresses, "c": None}, security, job="job", version="1", deadline=30.0)
    try:
        with pytest.raises(AgreementError, match=r"a: federation \(names and fingerprints\) is"):
            a.recv("b", "x", 30.0)
    finally:
        a.stop(0.0)
        b.stop(0.0)


def test_no_plaintext_but_on_loopback_and_by_name():
    for address in ("10.1.2.3:7000", "bank.example:7000", "0.0.0.0:7000"):
        with pytest.raises(InputError, match="plaintext must be left out for every address but"):
            end("a", {"a": address, "b": None}, plaintext=True)
    addresses = {"a": f"localhost:{free_port()}", "b": None, "c": None}
    with parties("abc", addresses, plaintext=True) as (ends, _):
        for one in ends.values():
            one.connect()
        assert stream_of(ends, "b", "c", 3) == [0, 1, 2]
    addresses = star_of("ab")
    with parties("a", addresses) as (_, _):
        mesh = end("b", addresses, plaintext=True, deadline=1.5)
        try:
            with pytest.raises(DeadlineExceeded, match="a has not connected"):
                mesh.connect()
        finally:
            mesh.stop(0.0)


@pytest.mark.parametrize("address", ["host", "host:", ":7", "host:x", "host:70000"])
def test_addresses_are_checked(address):
    with pytest.raises(InputError, match="address must be host:port"):
        end("a", {"a": address, "b": None})


def test_somebody_must_listen_and_hold_a_byte():
    with pytest.raises(InputError, match="somebody listens"):
        end("a", {"a": None, "b": None})
    with pytest.raises(InputError, match="capacity must be a positive number of bytes"):
        end("a", star_of("ab"), capacity=0)


def test_the_port_may_be_chosen_by_the_system():
    mesh = end("a", {"a": "127.0.0.1:9", "b": None}, bind="127.0.0.1:0")
    try:
        assert mesh.port
        assert mesh.port != 9
    finally:
        mesh.stop(0.0)
    mesh = end("b", star_of("ab"))
    assert mesh.port is None
    mesh.stop(0.0)


def test_stopping_waits_until_the_others_have_everything():
    sent = np.arange(4 << 17, dtype=np.uint64)
    addresses = star_of("abc")
    ends = {name: end(name, addresses) for name in "abc"}
    for one in ends.values():
        one.connect()

    def program(mesh):
        if mesh.me == "b":
            mesh.send("c", "x", sent)
        elif mesh.me == "c":
            time.sleep(0.3)
            got = np.array(mesh.recv("b", "x"))
            mesh.stop()
            return got
        # The relay is done first, and stays until nobody needs it.
        mesh.stop()
        return None

    began = time.monotonic()
    got = run(ends, program).unwrap()["c"]
    assert np.array_equal(got, sent)
    assert time.monotonic() - began < 30.0


def test_stopping_does_not_wait_for_a_party_that_is_gone():
    with behind_proxy(timing=QUICK) as (ends, proxy):
        proxy.refusing = True
        proxy.cut()
        ends["a"].send("b", "x", np.zeros(10))
        began = time.monotonic()
        ends["c"].stop()
        ends["a"].stop()
        assert time.monotonic() - began < 30.0


def raw_call(addresses, name, names="abc"):
    """A bare gRPC stream with the certificate of ``name``, and what to write to it."""
    security = credentials(name, names)
    channel = grpc.secure_channel(
        addresses["a"],
        grpc.ssl_channel_credentials(
            security.trusted_pem(("a",)), security.private_pem(), security.certificate_pem()
        ),
        [("grpc.ssl_target_name_override", security.server_name("a"))],
    )
    outbox = Outbox()
    call = channel.stream_stream(f"/{network_links.SERVICE}/{network_links.METHOD}")
    return channel, outbox, call(iter(outbox))


@pytest.mark.parametrize("first", [b"", b"nonsense", b"x" * 600, msgspec.msgpack.encode({"n": 1})])
def test_a_wrong_greeting_is_refused(first):
    with parties("a", star_of("abc")) as (_, addresses):
        channel, outbox, stream = raw_call(addresses, "b")
        with channel:
            outbox.put(first, urgent=True)
            with pytest.raises(grpc.RpcError) as caught:
                next(stream)
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert "greeting" in caught.value.details()
            outbox.close()


def test_nonsense_ends_its_own_link_and_the_party_goes_on_serving():
    with parties("ac", star_of("abc")) as (ends, addresses):
        channel, outbox, stream = raw_call(addresses, "b")
        with channel:
            outbox.put(msgspec.msgpack.encode(Greeting("b", b"s")), urgent=True)
            assert read_greeting(next(stream)).name == "a"
            outbox.put(b"\xff" * 100, urgent=True)
            with pytest.raises((grpc.RpcError, StopIteration)):
                [next(stream) for _ in range(100)]
            outbox.close()
        ends["c"].send("a", "x", {"still": "here"})
        assert ends["a"].recv("c", "x") == {"still": "here"}


def test_a_listening_party_that_talks_nonsense_is_left(monkeypatch):
    with parties("a", star_of("ab")) as (ends, addresses):
        monkeypatch.setattr(ends["a"], "greeting", Greeting("z", b"s"))
        refused(WireError, "b", addresses, credentials("b", "ab"), "b: a sent greeting by z")


def test_only_the_relay_gives_notices():
    """Neither well-formed ones, which would part two others, nor others, which would end a link."""
    with parties("abcd", timing=STEADY) as (ends, _):
        for one in ends.values():
            one.connect()
        head = envelope.pack_head(envelope.NOTICE, 0, 1, 2, 0)
        for body in (envelope.encode(envelope.LinkNotice("d", False)), b"nonsense"):
            with pytest.raises(WireError, match="a notice from b, which is not the relay"):
                ends["a"].arrived(head + body, Link("b", False))
            with pytest.raises(WireError, match="a notice from b, which is not the relay"):
                ends["c"].arrived(head + body, Link("a", True))
        assert ends["c"].status()["d"].link != "broken"
        assert stream_of(ends, "d", "c", 3) == [0, 1, 2]


def test_the_relay_passes_nothing_to_who_takes_it_from_the_sender_only():
    """Passed on, it made the receiver end its link with the relay, and blame that."""
    addresses = {"a": f"127.0.0.1:{free_port()}", "b": None, "c": f"127.0.0.1:{free_port()}"}
    with parties("abc", addresses, timing=STEADY) as (ends, _):
        for one in ends.values():
            one.connect()
        raw = envelope.pack_head(envelope.STATE, 0, 1, 2, 0) + b"closed"
        with pytest.raises(WireError, match="a packet for c, to which b has an own link"):
            ends["a"].arrived(raw, Link("b", False))
        assert stream_of(ends, "a", "c", 3) == [0, 1, 2]


def test_a_notice_of_a_relay_is_only_about_parties_behind_it():
    with parties("abc", timing=QUICK) as (ends, _):
        for one in ends.values():
            one.connect()
        link = Link("a", True)
        for party in ("a", "zoe"):
            body = envelope.encode(envelope.LinkNotice(party, False))
            ends["b"].arrived(envelope.pack_head(envelope.NOTICE, 0, 0, 1, 0) + body, link)
        assert {s.link for s in ends["b"].status().values()} == {"up"}


def test_a_full_outbox_makes_the_relay_read_more_slowly():
    outbox = Outbox()
    outbox.put(b"x" * 100, urgent=False)
    added = threading.Event()

    def adding():
        outbox.put(b"second", urgent=False, limit=50)
        added.set()

    thread = start("adding", adding)
    assert not added.wait(0.2)
    packets_out = iter(outbox)
    assert next(packets_out) == b"x" * 100
    assert added.wait(5.0)
    outbox.put(b"first", urgent=True)
    assert [next(packets_out), next(packets_out)] == [b"first", b"second"]
    outbox.put(b"gone", urgent=False)
    outbox.close()
    outbox.put(b"late", urgent=True)
    assert list(packets_out) == []
    join([thread])


def test_a_party_that_floods_the_relay_holds_up_nobody_else():
    outbox = Outbox()
    for number in range(3):
        outbox.put(b"flood %d" % number, urgent=True, source="b", limit=100)
        outbox.put(b"flood", urgent=False, source="b", limit=100)
    outbox.put(b"data", urgent=False, source="c", limit=10)
    outbox.put(b"beat", urgent=True, source="c", limit=10)
    outbox.finish()
    assert list(outbox) == [
        *(b"flood 0", b"beat", b"flood 1", b"flood 2"),
        *(b"flood", b"data", b"flood", b"flood"),
    ]


def test_a_party_that_opens_stream_after_stream_takes_no_thread_of_the_others(monkeypatch):
    """Nobody says who it is on them, and each would keep a thread for as long as it may."""
    monkeypatch.setattr(network_links, "GREETING", 60.0)
    addresses = star_of("abc")
    with parties("a", addresses) as (ends, _):
        calls = [raw_call(addresses, "b") for _ in range(40)]
        code = None
        while code is not grpc.StatusCode.RESOURCE_EXHAUSTED:
            ended = [stream for _, _, stream in calls if stream.done()]
            code = ended[0].code() if ended else None
            time.sleep(0.05)
        ends["c"] = end("c", addresses)
        ends["c"].send("a", "x", {"still": "here"})
        assert ends["a"].recv("c", "x", 15.0) == {"still": "here"}
        for channel, outbox, _ in calls:
            outbox.close()
            channel.close()


def test_a_newer_link_takes_the_place_of_an_older_one():
    with parties("a", star_of("abc")) as (ends, _):
        old, new = Link("b", False), Link("b", False)
        ends["a"].admit("b", b"first")
        ends["a"].link_up(old)
        ends["a"].link_up(new)
        assert list(old.outbox) == []
        ends["a"].link_down(old)
        with pytest.raises(NameTaken, match="another one is connected in this job"):
            ends["a"].admit("b", b"second")
        relayed = envelope.pack_head(envelope.DATA, 3, 2, 1, 0) + b"from c to b"
        ends["a"].arrived(relayed, Link("c", False))
        new.outbox.finish()
        assert list(new.outbox) == [relayed]
        ends["a"].link_down(new)
        with pytest.raises(NameTaken, match="another one was connected before in this job"):
            ends["a"].admit("b", b"second")


def test_without_grpc_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    spec = importlib.util.spec_from_file_location("links_again", network_links.__file__)
    with pytest.raises(InputError, match=r"needs grpcio: pip install 'vertikal\[node\]'"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_the_command_needs_no_extra():
    """It loads, and `keygen` runs, where only the library is installed."""
    code = (
        "import sys; sys.modules['grpc'] = sys.modules['mpi4py'] = None; "
        "from vertikal.cli import main; main(['keygen', '--help'], standalone_mode=False)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
