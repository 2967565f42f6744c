"""Links between workers of two parties: over TLS, in both keys' names, and never mended."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from vertikal.errors import DeadlineExceeded, LinkLost, WireError
from vertikal.mesh import wire, worker_links
from vertikal.mesh.worker_links import WorkerLinks, own_host
from vertikal.secure.keys.link_identity import LinkIdentity

VALUES = np.arange(12, dtype=np.uint8).reshape(3, 4)
SIZE = (np.dtype(np.uint8), (3, 4))


def identities(*names):
    """Identities that trust one another."""
    made = {name: LinkIdentity.create(name) for name in names}
    return {
        name: one.trusting({peer: made[peer].certificate for peer in names if peer != name})
        for name, one in made.items()
    }


@contextmanager
def worker(identity, number=0, deadline=10.0, *, listening=False):
    links = WorkerLinks(identity, number, deadline)
    if listening:
        links.listen(host="127.0.0.1")
    try:
        yield links
    finally:
        links.close()


@contextmanager
def pair(deadline=10.0):
    """A worker of bank that listens, and the second one of shop that has dialled it."""
    known = identities("bank", "shop")
    with (
        worker(known["bank"], 0, deadline, listening=True) as bank,
        worker(known["shop"], 1, deadline) as shop,
    ):
        shop.dial("bank", 0, bank.address)
        yield bank, shop


def test_arrays_arrive_whatever_the_order_in_which_they_are_asked_for():
    with pair() as (bank, shop):
        for number in range(3):
            shop.send("bank", 0, f"sum/{number}", VALUES + np.uint8(number))
        for number in (2, 0, 1):
            got = bank.receive("shop", 1, f"sum/{number}", *SIZE)
            np.testing.assert_array_equal(got, VALUES + np.uint8(number))


def test_a_receiver_waits_for_a_link_and_for_what_it_brings():
    known = identities("bank", "shop")
    with (
        worker(known["bank"], listening=True) as bank,
        worker(known["shop"]) as shop,
    ):
        got = []
        waiting = threading.Thread(
            target=lambda: got.append(bank.receive("shop", 0, "x", *SIZE)), daemon=True
        )
        waiting.start()
        shop.dial("bank", 0, bank.address)
        shop.send("bank", 0, "x", VALUES)
        waiting.join(20)
        np.testing.assert_array_equal(got[0], VALUES)


def test_what_is_on_the_wire_is_encrypted():
    known = identities("bank", "shop")
    seen, values = [], np.full((100, 100), ord("v"), np.uint8)
    with worker(known["bank"], listening=True) as bank:
        host, _, port = bank.address.rpartition(":")
        with tapped((host, int(port)), seen) as address, worker(known["shop"]) as shop:
            shop.dial("bank", 0, address)
            shop.send("bank", 0, "sum/of/phases", values)
            bank.receive("shop", 0, "sum/of/phases", np.dtype(np.uint8), (100, 100))
    wire_bytes = b"".join(seen)
    assert len(wire_bytes) > 10_000
    assert b"phases" not in wire_bytes
    assert b"v" * 8 not in wire_bytes


@contextmanager
def tapped(target, seen):
    """Pass a connection on, and keep what goes through from the one who dials."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source, sink, kept):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                kept.append(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def serve():
        with suppress(OSError):
            near, _ = listener.accept()
            with near, socket.create_connection(target) as far:
                back = threading.Thread(target=copy, args=(far, near, []), daemon=True)
                back.start()
                copy(near, far, seen)
                back.join(10)

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.close()


def test_a_wrong_key_is_refused_by_either_end():
    known, others = identities("bank", "shop"), identities("bank", "shop")
    with worker(known["bank"], listening=True) as bank:
        # Shop trusts the right certificate of bank, and shows one that bank was never told of.
        stranger = others["shop"].trusting({"bank": known["bank"].certificate})
        with (
            worker(stranger) as shop,
            pytest.raises(LinkLost, match=r"worker 1 of shop cannot reach worker 1 of bank at 127"),
        ):
            shop.dial("bank", 0, bank.address)
        # Bank shows one that shop was never told of.
        misled = known["shop"].trusting({"bank": others["bank"].certificate})
        with worker(misled) as shop, pytest.raises(LinkLost, match="CERTIFICATE_VERIFY_FAILED"):
            shop.dial("bank", 0, bank.address)
        with worker(known["shop"]) as shop:
            shop.dial("bank", 0, bank.address)


def test_another_partys_certificate_does_not_speak_for_a_party():
    known = identities("bank", "shop", "mill")

    class Pretender(WorkerLinks):
        """Dials with the certificate of mill, and says that it is shop."""

        def __init__(self, security):
            super().__init__(security, 0, 5.0)
            self.me = "shop"

    pretender = Pretender(known["mill"])
    with worker(known["bank"], listening=True) as bank:
        with pytest.raises(LinkLost):
            pretender.dial("bank", 0, bank.address)
        with worker(known["shop"]) as shop, pytest.raises(LinkLost, match="cannot reach worker 3"):
            shop.dial("bank", 2, bank.address)  # bank's first worker is not its third


def test_frames_in_anothers_name_break_the_link(monkeypatch):
    frame = wire.frame
    with pair() as (bank, shop):

        def forged(sender, receiver, tag, payload):
            return frame("mill", receiver, tag, payload)

        monkeypatch.setattr(wire, "frame", forged)
        shop.send("bank", 0, "x", VALUES)
        with pytest.raises(LinkLost, match=r"link of worker 2 of shop broke .*nobody waits for"):
            bank.receive("shop", 1, "x", *SIZE)


def test_a_stranger_without_tls_gets_no_answer(monkeypatch):
    monkeypatch.setattr(worker_links, "HANDSHAKE", 0.2)
    known = identities("bank", "shop")
    with worker(known["bank"], listening=True) as bank:
        host, _, port = bank.address.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
            with suppress(ConnectionError):
                assert b"HTTP" not in plain.recv(1000)
        with worker(known["shop"]) as shop:
            monkeypatch.setattr(worker_links, "HANDSHAKE", 10.0)
            shop.dial("bank", 0, bank.address)


def test_a_worker_that_is_gone_is_named_at_once():
    with pair() as (bank, shop):
        shop.send("bank", 0, "x", VALUES)
        shop.close()
        # What it had sent is still there.
        np.testing.assert_array_equal(bank.receive("shop", 1, "x", *SIZE), VALUES)
        with pytest.raises(LinkLost, match=r"worker 1 of bank: the link of worker 2 of shop broke"):
            bank.receive("shop", 1, "y", *SIZE)
        # A link that broke is not waited for.
        with pytest.raises(LinkLost, match="no link from worker 2 of shop"):
            bank.receive("shop", 1, "z", *SIZE)


def test_a_sender_learns_that_its_receiver_is_gone():
    big = np.zeros(1 << 20, np.uint8)
    with pair() as (bank, shop):
        bank.close()

        def send_much():
            for number in range(100):
                shop.send("bank", 0, f"x/{number}", big)

        with pytest.raises(LinkLost, match=r"worker 2 of shop: the link to worker 1 of bank at "):
            send_much()
        with pytest.raises(LinkLost, match="no link to worker 1 of bank any more"):
            shop.send("bank", 0, "y", VALUES)


def test_a_worker_that_dials_again_takes_its_place():
    with pair() as (bank, shop), worker(shop.security, 1) as again:
        again.dial("bank", 0, bank.address)
        again.send("bank", 0, "x", VALUES)
        np.testing.assert_array_equal(bank.receive("shop", 1, "x", *SIZE), VALUES)


def test_waits_end_at_their_deadline_and_name_who_was_waited_for(monkeypatch):
    big = np.zeros(32 << 20, np.uint8)
    with (
        pair(deadline=0.3) as (bank, _),
        pytest.raises(DeadlineExceeded, match=r"nothing from worker 2 of shop for 'x' within"),
    ):
        bank.receive("shop", 1, "x", *SIZE)
    with (
        pair(deadline=0.3) as (_, shop),
        pytest.raises(DeadlineExceeded, match=r"worker 1 of bank at .* takes nothing of 'x'"),
    ):
        shop.send("bank", 0, "x", big)
    monkeypatch.setattr(worker_links, "MISSING", 0.1)
    known = identities("bank", "shop")
    with (
        worker(known["bank"], listening=True) as bank,
        pytest.raises(LinkLost, match=r"worker 1 of bank has no link from worker 3 of shop, after"),
    ):
        bank.receive("shop", 2, "x", *SIZE)


def test_an_address_where_nobody_listens_is_named():
    known = identities("bank", "shop")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with worker(known["shop"]) as shop, pytest.raises(LinkLost, match=f"127.0.0.1:{port}"):
        shop.dial("bank", 0, f"127.0.0.1:{port}")


def test_what_does_not_fit_or_is_not_asked_for_is_refused(monkeypatch):
    with pair() as (bank, shop):
        shop.send("bank", 0, "x", VALUES)
        with pytest.raises(WireError, match=r"sent uint8 \(3, 4\) under 'x', expected uint8 \(5,"):
            bank.receive("shop", 1, "x", np.dtype(np.uint8), (5, 5))
    monkeypatch.setattr(worker_links, "UNASKED", 1000)
    with pair() as (bank, shop):
        for number in range(200):
            shop.send("bank", 0, f"junk/{number}", VALUES)
        with pytest.raises(LinkLost, match="sends what nobody asks for"):
            bank.receive("shop", 1, "x", *SIZE)


def test_a_machine_without_a_way_out_is_its_own_host(monkeypatch):
    assert own_host()

    class Closed(socket.socket):
        def connect(self, address):
            raise OSError("network is unreachable")

    monkeypatch.setattr(worker_links.socket, "socket", Closed)
    assert own_host() == "127.0.0.1"
