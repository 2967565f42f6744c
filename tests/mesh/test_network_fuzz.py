"""Malformed packets at a listening party, over a real socket and real TLS.

Every one is refused, memory stays bounded, and the party goes on serving the others.
"""

from __future__ import annotations

import socket
import threading
import time

import grpc
import msgspec
import numpy as np
import pytest

from tests.conformance.networks import credentials, end, star_of
from tests.mesh.packets.test_packet_mesh import corpus, mutated, resident
from tests.mesh.test_network import raw_call, stream_of
from vertikal.errors import WireError
from vertikal.mesh import network_links, wire
from vertikal.mesh.network import NetworkMesh
from vertikal.mesh.network_links import Greeting, Link
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.envelope import Hello
from vertikal.mesh.packets.handshake import introduction
from vertikal.mesh.packets.packet_mesh import CAPACITY

BATCH = 40
"""Packets on one stream; the first that is refused ends it."""


class Watched:
    """Counts what arrives at party a from b, and what becomes of it."""

    def __init__(self, monkeypatch):
        self.arrived = self.refused = 0
        self._lock = threading.Lock()
        original = NetworkMesh.arrived

        def arrived(mesh, raw, link):
            if (mesh.me, link.peer) != ("a", "b"):
                return original(mesh, raw, link)
            try:
                return original(mesh, raw, link)
            except WireError:
                self._count(refused=True)
                raise
            finally:
                self._count(arrived=True)

        monkeypatch.setattr(NetworkMesh, "arrived", arrived)
        # What spoils the pair, and not the link, is a refusal too; here the pair lives on.
        monkeypatch.setattr(NetworkMesh, "blame", lambda *_: self._count(refused=True))

    def _count(self, *, refused=False, arrived=False):
        with self._lock:
            self.refused += refused
            self.arrived += arrived


@pytest.fixture
def ends():
    """Parties a (listening) and c; there is no b but the one that misbehaves."""
    addresses = star_of("abc")
    found = {name: end(name, addresses) for name in "ac"}
    yield found, addresses
    for one in found.values():
        one.stop(0.0)


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.timeout(1800)
def test_mutated_packets_over_a_socket(monkeypatch, ends, count):
    ends, addresses = ends
    watched = Watched(monkeypatch)
    draw, real = np.random.default_rng(1), corpus()
    ends["c"].send("a", "x", {"before": 1})
    before, sent = resident(), 0
    channel, outbox, stream = raw_call(addresses, "b")
    outbox.close()
    call = channel.stream_stream(f"/{network_links.SERVICE}/{network_links.METHOD}")
    with channel:
        while watched.arrived < count:
            batch = [msgspec.msgpack.encode(Greeting("b", b"s"))]
            for i in range(sent, sent + BATCH):
                raw = mutated(draw, real[i % len(real)])
                # Two thirds say that they are b's own and for a, as the transport demands.
                batch.append(raw[:2] + b"\0\1\0\0" + raw[6:] if i % 3 else raw)
            sent += BATCH
            stream = call(iter(batch))
            try:
                for _ in stream:
                    pass
            except grpc.RpcError:
                continue
        grown = resident() - before
    assert watched.refused > count // 4
    assert grown < 128 << 20
    assert ends["a"].recv("c", "x") == {"before": 1}
    assert stream_of(ends, "c", "a", 3) == [0, 1, 2]


@pytest.mark.parametrize("count", [50, pytest.param(5_000, marks=pytest.mark.slow)])
def test_bytes_that_are_no_tls(ends, count):
    ends, addresses = ends
    draw = np.random.default_rng(2)
    host, port = addresses["a"].split(":")
    before = resident()
    for i in range(count):
        with socket.create_connection((host, int(port)), 20.0) as connection:
            hello = b"\x16\x03\x01" if i % 2 else b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            connection.sendall(hello + draw.bytes(int(draw.integers(0, 2000))))
    assert resident() - before < 128 << 20
    assert stream_of(ends, "c", "a", 3) == [0, 1, 2]


def test_a_party_that_announces_much_and_sends_little_costs_nothing(ends):
    """16 GiB are announced again and again; memory is not touched before bytes arrive."""
    ends, _ = ends
    security, link = credentials("b", "abc"), Link("b", False)
    hello = Hello(
        sender="b",
        receiver="a",
        session=b"s",
        protocol=wire.PROTOCOL_VERSION,
        version="1",
        job="job",
        federation=security.digest(("a", "b", "c")),
        capacity=CAPACITY,
        key=security.public_key,
    )
    head = envelope.pack_head(envelope.HELLO, 0, 1, 0, 0)
    ends["a"].arrived(head + introduction(hello, security), link)
    header = wire.Header("b", "a", "x", "array", "uint8", (wire.MAX_PAYLOAD,))
    raw = msgspec.msgpack.encode(header)
    prefix = wire.PREFIX.pack(wire.MAGIC, wire.PROTOCOL_VERSION, len(raw), wire.MAX_PAYLOAD)
    before = resident()
    for number in range(50):
        head = envelope.pack_head(envelope.DATA, envelope.FIRST, 1, 0, number)
        ends["a"].arrived(head + prefix + raw, link)
        time.sleep(0)
    assert resident() - before < 64 << 20
    # Its hello was taken, and no announcement refused: a refusal would end all waits.
    assert ends["a"].status()["b"].link == "up"
    assert stream_of(ends, "c", "a", 3) == [0, 1, 2]
