"""Packets: chunks, envelopes, control messages, and what is refused."""

from __future__ import annotations

import resource
import tracemalloc
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertikal.errors import SecrecyError, WireError
from vertikal.mesh import wire
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.envelope import CHUNK, FIRST, LAST, Assembly, State, WaitReport
from vertikal.mesh.packets.pair import Incoming, Outgoing, Pair
from vertikal.mesh.packets.peer_status import PeerStatus, Wait, chain, status_of
from vertikal.mesh.packets.security import NoSecurity

CAPACITY = 1 << 26


def whole(into, frame):
    """All chunks of a frame, taken in order; the frame that comes out."""
    came = None
    for flags, pieces in envelope.chunks(frame):
        assert came is None
        came = into.take(into.expected, flags, b"".join(pieces), CAPACITY)
    return came


def test_a_packet_is_put_together_when_it_is_written():
    array = np.arange(8, dtype=np.uint8)
    packet = envelope.Cut.of(b"head", array.data, b"")
    assert len(packet) == 12
    assert envelope.whole(packet) == b"head" + array.tobytes()
    assert envelope.whole(b"ready") == b"ready"
    again = b"outer" + packet
    assert (len(again), envelope.whole(again)) == (17, b"outerhead" + array.tobytes())


@pytest.mark.parametrize("size", [0, 1, CHUNK - 200, CHUNK, CHUNK + 1, 3 * CHUNK, 5 * CHUNK + 17])
def test_a_frame_of_any_size_passes_in_chunks(size):
    sent = wire.frame("a", "b", "x", np.arange(size, dtype=np.uint64).astype(np.uint8))
    pieces = list(envelope.chunks(sent))
    lengths = [sum(len(piece) for piece in parts) for _, parts in pieces]
    assert max(lengths[0] - sent.size + size, *lengths[1:], 0) <= CHUNK
    assert max(lengths) <= envelope.MAX_PACKET
    assert sum(lengths) == sent.size
    assert [flags for flags, _ in pieces].count(LAST) + (len(pieces) == 1) == 1
    assert pieces[0][0] & FIRST
    came = whole(Incoming(), sent)
    assert np.array_equal(came.payload(), sent.payload())


def test_a_sum_of_shapes_that_end_at_the_edge_of_a_chunk():
    empty = wire.frame("a", "b", "x", np.zeros(0, np.uint8))
    for size in (CHUNK - empty.size, *range(CHUNK - 2, CHUNK + 3)):
        sent = wire.frame("a", "b", "x", np.full(size, 7, np.uint8))
        assert whole(Incoming(), sent).payload().sum() == 7 * size


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_repeated_early_and_late_chunks_change_nothing(numbers):
    """The receiver takes each number once and in order, whatever the links do."""
    into, got = Incoming(), []
    frames = [wire.frame("a", "b", "x", {"i": i}) for i in range(6)]
    chunks = [next(iter(envelope.chunks(frame))) for frame in frames]
    for number in [*numbers, *range(6)]:
        flags, pieces = chunks[number]
        frame = into.take(number, flags, b"".join(pieces), CAPACITY)
        if frame is not None:
            got.append(frame.payload()["i"])
    assert got == list(range(6))


def test_a_frame_given_up_half_way_is_replaced_by_the_next():
    into = Incoming()
    flags, pieces = next(iter(envelope.chunks(wire.frame("a", "b", "x", np.zeros(2 * CHUNK)))))
    assert into.take(0, flags, b"".join(pieces), CAPACITY) is None
    assert whole(into, wire.frame("a", "b", "y", {"k": 1})).payload() == {"k": 1}


@pytest.mark.parametrize(
    ("flags", "body", "said"),
    [
        (0, b"x", "continues a frame that has not begun"),
        (FIRST, b"VK", "shorter than its header"),
        (FIRST | LAST, b"x" * 40, "not a frame"),
    ],
)
def test_chunks_that_are_no_frame(flags, body, said):
    with pytest.raises(WireError, match=said):
        Incoming().take(0, flags, body, CAPACITY)


def test_more_or_less_payload_than_announced():
    prefix, body = wire.frame("a", "b", "x", np.zeros(10, np.uint8)).buffers()
    with pytest.raises(WireError, match="'x': 11 bytes of payload, but announced 10"):
        Assembly(prefix + bytes(body) + b"x")
    assert Assembly(prefix + bytes(body)).add(b"") is None
    with pytest.raises(WireError, match="'x': 9 bytes of payload, but announced 10"):
        Assembly(prefix + bytes(body[:9])).frame()


def test_a_payload_that_memory_cannot_hold_is_refused(monkeypatch):
    prefix, _ = wire.frame("a", "b", "x", np.zeros(10, np.uint8)).buffers()

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(envelope.np, "empty", full)
    with pytest.raises(WireError, match="'x': no memory for 10 bytes of payload"):
        Assembly(prefix)


def test_a_receiver_does_not_take_more_than_agreed():
    into = Incoming()
    frame = wire.frame("a", "b", "x", np.zeros(100, np.uint8))
    flags, pieces = next(iter(envelope.chunks(frame)))
    assert into.take(0, flags, b"".join(pieces), 150) is not None
    with pytest.raises(WireError, match="bytes wait here; 150 were agreed"):
        into.take(1, flags, b"".join(pieces), 150)


def test_acknowledgements_free_what_is_kept_and_give_room():
    out = Outgoing()
    for i in range(3):
        out.keep(bytes([i]) * 10)
    out.handed = 100
    assert not out.room(60, 120)
    out.asked = True
    out.acknowledged(2, 50)
    assert [number for number, _ in out.kept] == [2]
    assert (out.kept_bytes, out.asked) == (10, False)
    assert out.room(60, 120)
    for received, consumed in ((4, 50), (2, 101)):
        with pytest.raises(WireError, match="an acknowledgement of"):
            out.acknowledged(received, consumed)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "packet of 0 bytes"),
        (b"\1" * 13, "packet of 13 bytes"),
        (bytes(envelope.MAX_PACKET + 1), "packet of"),
        (envelope.pack_head(0, 0, 0, 1, 0), "unknown kind 0"),
        (envelope.pack_head(9, 0, 0, 1, 0), "unknown kind 9"),
        (envelope.pack_head(envelope.STATE, 1, 0, 1, 0), "kind 3 with flags 1"),
        (envelope.pack_head(envelope.DATA, 4, 0, 1, 0), "kind 2 with flags 4"),
        (envelope.pack_head(envelope.DATA, 0, 3, 1, 0), "from party 3 to party 1 of 3"),
        (envelope.pack_head(envelope.DATA, 0, 0, 9, 0), "from party 0 to party 9 of 3"),
        (envelope.pack_head(envelope.DATA, 0, 1, 1, 0), "from party 1 to party 1 of 3"),
    ],
)
def test_envelopes_that_are_refused(raw, said):
    with pytest.raises(WireError, match=said):
        envelope.unpack(raw, 3)


def test_control_messages_are_checked():
    state = State(1, 2, 3, "solve", (WaitReport("b", "x", 1.0),))
    assert envelope.decode(envelope.encode(state), State) == state
    for body in (
        b"",
        b"\xc1",
        envelope.encode({"received": 1}),
        envelope.encode(envelope.LinkNotice("a", True)),
    ):
        with pytest.raises(WireError, match="State"):
            envelope.decode(body, State)
    with pytest.raises(WireError, match="State of 20000 bytes, at most 16384"):
        envelope.decode(b"x" * 20_000, State)


def mutated(draw, raw):
    """A real packet with some of its bytes changed, cut or repeated."""
    raw = bytearray(raw)
    for _ in range(int(draw.integers(1, 4))):
        place = int(draw.integers(0, len(raw) + 1))
        match draw.integers(0, 4):
            case 0 if place < len(raw):
                raw[place] = int(draw.integers(0, 256))
            case 1:
                del raw[place:]
            case 2:
                raw[place:place] = draw.bytes(int(draw.integers(1, 9)))
            case _:
                raw += raw[:place]
    return bytes(raw)


def corpus():
    arrays = [np.zeros(0), np.arange(5, dtype=np.uint8), np.ones((2, 3), np.float32), {"k": [1]}]
    frames = [wire.frame("a", "b", "tag", payload) for payload in arrays]
    bodies = [b"".join((*pieces,)) for frame in frames for _, pieces in envelope.chunks(frame)]
    controls = [
        envelope.encode(State(1, 2, 3, "solve", (WaitReport("b", "x", 1.0),))),
        envelope.encode(envelope.Hello("a", "b", b"s" * 16, 1, "1", "j", "f", 5, b"k" * 32)),
        envelope.encode(envelope.SignedHello(b"x" * 80, b"y" * 70)),
        envelope.encode(envelope.LinkNotice("a", True)),
    ]
    kinds = [envelope.DATA] * len(bodies) + [
        envelope.STATE,
        envelope.HELLO,
        envelope.HELLO,
        envelope.NOTICE,
    ]
    return [
        envelope.pack_head(kind, 3 if kind == envelope.DATA else 0, 0, 1, 0) + body
        for kind, body in zip(kinds, [*bodies, *controls], strict=True)
    ]


def decode_all(raw):
    """Everything that a receiver decodes of a packet; WireError or a good message."""
    packet = envelope.unpack(raw, 3)
    if packet.kind == envelope.DATA:
        frame = Incoming().take(packet.number, packet.flags, packet.body, CAPACITY)
        return frame is None or frame.payload()
    kind = {
        envelope.STATE: State,
        envelope.HELLO: envelope.SignedHello,
        envelope.NOTICE: envelope.LinkNotice,
    }
    return envelope.decode(packet.body, kind[packet.kind])


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_mutated_packets_are_refused_or_read_and_memory_stays_bounded(count):
    draw = np.random.default_rng(0)
    real = corpus()
    refusals, before = 0, resident()
    tracemalloc.start()
    for i in range(count):
        try:
            decode_all(mutated(draw, real[i % len(real)]))
        except WireError:
            refusals += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refusals > count // 2
    assert peak < 64 << 20
    assert resident() - before < 64 << 20


def resident():
    """Bytes of memory that this process occupies."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@settings(max_examples=300)
@given(st.binary(max_size=400))
def test_any_bytes_are_refused_or_read(raw):
    for candidate in (raw, corpus()[0][:14] + raw):
        with suppress(WireError):
            decode_all(candidate)


def test_nothing_is_encrypted_without_an_identity():
    with pytest.raises(SecrecyError, match="nothing can be encrypted for b"):
        NoSecurity().channel("b", b"", b"")


def status(link, waits=(), doing="solve"):
    return PeerStatus(link, 2.0, doing, waits)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("not yet", "b has not connected in 2.0 s"),
        ("broken", "b is not connected, last heard of 2.0 s ago, doing solve"),
        ("silent", "b is connected but silent for 2.0 s (frozen, or its machine is), doing solve"),
        ("closed", "b has ended"),
        ("failed", "b has failed"),
        ("up", "b was last heard of 2.0 s ago, doing solve"),
    ],
)
def test_standings_in_words(link, words):
    assert status(link).describe("b") == words


def test_a_chain_ends_where_it_comes_back_or_leaves():
    to_me, to_c = (WaitReport("a", "y", 1.0),), (WaitReport("c", "z", 1.0),)
    wait = Wait("b", "'x'", 0.0)
    assert chain("a", wait, {"b": status("up", to_me), "c": status("up")}).endswith(
        "b waits for a (y, 1.0 s when last seen)"
    )
    round_trip = {"b": status("up", to_c), "c": status("up", (WaitReport("b", "w", 1.0),))}
    assert chain("a", wait, round_trip).count("waits for") == 3
    # Frozen, b has told of a wait that may have ended long ago: that it is frozen is what counts.
    frozen = {"b": status("silent", to_me), "c": status("up")}
    assert chain("a", wait, frozen).count("waits for") == 1
    assert "b is connected but silent for" in chain("a", wait, frozen)


def test_the_status_of_a_peer():
    pair = Pair("b", 1, False, since=10.0)
    assert status_of(pair, 12.0, 5.0).link == "not yet"
    pair.session, pair.heard = b"s", 11.0
    assert status_of(pair, 12.0, 5.0) == PeerStatus("up", 1.0, "", ())
    assert status_of(pair, 17.0, 5.0).link == "silent"
    pair.lost = 12.0
    assert status_of(pair, 12.0, 5.0).link == "broken"
    pair.theirs = State(0, 0, 0, ended="closed")
    assert status_of(pair, 12.0, 5.0).link == "closed"
    assert msgspec.structs.asdict(pair.theirs)["ended"] == "closed"
