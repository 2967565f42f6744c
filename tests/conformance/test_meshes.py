"""The duties of every mesh, whatever carries the frames."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
import pytest

from tests.conformance.meshes import connected, every_mesh
from tests.conformance.running import join, run, start
from vertikal.errors import DeadlineExceeded, MeshError, PeerStopped, WireError
from vertikal.mesh import collectives, wire
from vertikal.mesh.packets.envelope import CHUNK

pytestmark = every_mesh

SHAPES = [(), (0,), (1,), (7,), (3, 0), (2, 3), (2, 3, 4), (2, 1, 3, 2), (0, 2, 0, 3)]
PROMPT = 20.0
"""Seconds within which a wait that cannot succeed has ended, where its deadline is far away."""


def example(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array whose bytes show every element's place and width."""
    raw = np.random.default_rng(0).bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    if dtype == "bool":
        return np.asarray(np.frombuffer(raw, np.uint8).reshape(shape) % 2 == 1)
    return np.frombuffer(raw, dtype).reshape(shape).copy()


def assert_same(came: object, sent: np.ndarray) -> None:
    assert isinstance(came, np.ndarray)
    assert (came.dtype, came.shape) == (sent.dtype, sent.shape)
    assert came.tobytes() == sent.tobytes()


def settle() -> None:
    """Give another thread the time to reach its wait."""
    time.sleep(0.1)


@pytest.mark.parametrize("dtype", list(wire.DTYPES))
def test_arrays_of_every_dtype_and_shape_arrive_as_they_were(factory, dtype):
    with connected(factory, "ab") as ends:
        for shape in SHAPES:
            sent = example(dtype, shape)
            ends["a"].send("b", "x", sent)
            assert_same(ends["b"].recv("a", "x"), sent)


@pytest.mark.parametrize(
    "cut",
    [
        lambda a: a.T,
        lambda a: a[:, ::2],
        lambda a: a[::-1, 1:],
        np.asfortranarray,
        lambda a: np.broadcast_to(a[0], (5, 6)),
        lambda a: a.astype(">i4"),
    ],
    ids=["transposed", "stepped", "reversed", "fortran", "broadcast", "big-endian"],
)
def test_any_layout_of_memory_arrives_in_c_order(factory, cut):
    sent = cut(np.arange(24, dtype=np.int32).reshape(4, 6))
    with connected(factory, "ab") as ends:
        ends["a"].send("b", "x", sent)
        came = ends["b"].recv("a", "x")
    np.testing.assert_array_equal(came, sent)
    assert came.flags.c_contiguous
    assert came.dtype == np.dtype("<i4")


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"text": "größer ≥ 漢字", "empty": "", "none": None, "yes": True, "no": False},
        {"ints": [0, -1, 2**63, -(2**63), 2**64 - 1], "floats": [0.1, -0.0, float("inf"), 5e-324]},
        {"bytes": bytes(range(256)), "nested": {"a": [{"b": []}, [[1], [2, [3]]]]}},
    ],
    ids=["empty", "plain", "numbers", "nested"],
)
def test_structured_messages_arrive_as_they_were(factory, message):
    with connected(factory, "ab") as ends:
        ends["a"].send("b", "x", message)
        came = ends["b"].recv("a", "x")
    assert came == message
    assert str(came) == str(message)


def test_a_structured_message_is_a_copy(factory):
    message = {"list": [1]}
    with connected(factory, "ab") as ends:
        ends["a"].send("b", "x", message)
        message["list"].append(2)
        assert ends["b"].recv("a", "x") == {"list": [1]}


def test_messages_under_one_tag_keep_their_order(factory):
    with connected(factory, "ab") as ends:
        outcome = run(
            ends,
            {
                "a": lambda mesh: [mesh.send("b", "x", np.array(i)) for i in range(200)],
                "b": lambda mesh: [int(mesh.recv("a", "x")) for _ in range(200)],
            },
        )
    assert outcome.unwrap()["b"] == list(range(200))


def test_tags_do_not_disturb_one_another(factory):
    with connected(factory, "ab") as ends:
        for i in range(3):
            for tag in ("x", "y", "x/y"):
                ends["a"].send("b", tag, {"tag": tag, "i": i})
        for tag in ("x/y", "y", "x"):
            for i in range(3):
                assert ends["b"].recv("a", tag) == {"tag": tag, "i": i}


def test_senders_do_not_disturb_one_another(factory):
    with connected(factory, "abc") as ends:
        ends["b"].send("a", "x", {"from": "b"})
        ends["c"].send("a", "x", {"from": "c"})
        assert ends["a"].recv("c", "x") == {"from": "c"}
        assert ends["a"].recv("b", "x") == {"from": "b"}


def test_both_directions_are_separate(factory):
    with connected(factory, "ab") as ends:
        ends["a"].send("b", "x", {"from": "a"})
        with pytest.raises(DeadlineExceeded):
            ends["a"].recv("b", "x", 0.05)
        assert ends["b"].recv("a", "x") == {"from": "a"}


def test_many_to_one(factory):
    names = tuple("abcdefgh")

    def program(mesh):
        if mesh.me != "a":
            for i in range(20):
                mesh.send("a", "x", np.array([ord(mesh.me), i]))
            return None
        return [[tuple(mesh.recv(peer, "x")) for _ in range(20)] for peer in mesh.peers]

    with connected(factory, names) as ends:
        got = run(ends, program).unwrap()["a"]
    assert got == [[(ord(peer), i) for i in range(20)] for peer in names[1:]]


@pytest.mark.parametrize("size", [0, 1, 255, CHUNK - 200, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_messages_of_every_size_pass_both_ways(factory, size):
    """Also those that end just before, at and after the edge of a chunk."""
    sent = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    with connected(factory, "abc") as ends:
        for sender, receiver in (("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")):
            ends[sender].send(receiver, "x", sent)
            assert_same(ends[receiver].recv(sender, "x"), sent)


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(count, marks=[] if count in (2, 5, 8) else [pytest.mark.slow])
        for count in range(2, 17)
    ],
)
def test_every_number_of_parties(factory, count):
    """Everybody writes to everybody, and sums and news travel along every shape."""
    names = tuple(f"party {i}" for i in range(count))

    def program(mesh):
        mine = names.index(mesh.me)
        for peer in mesh.peers:
            mesh.send(peer, "x", np.array([mine, names.index(peer)], np.uint16))
        got = [mesh.recv(peer, "x").tolist() for peer in mesh.peers]
        assert got == [[names.index(peer), mine] for peer in mesh.peers]
        totals = []
        for shape in collectives.SHAPES:
            node = collectives.SHAPES[shape](names)
            total = collectives.reduce(mesh, np.array([2**mine], np.uint32), node, shape)
            totals.append(int(collectives.broadcast(mesh, total, node, f"news/{shape}")[0]))
        return totals

    with connected(factory, names, deadline=60.0) as ends:
        got = run(ends, program).unwrap()
    assert got == dict.fromkeys(names, [2**count - 1] * 3)


@pytest.mark.parametrize(
    "megabytes", [32, pytest.param(256, marks=pytest.mark.slow)], ids="{} MB".format
)
def test_a_large_message_passes(factory, megabytes):
    sent = np.arange(megabytes << 17, dtype=np.uint64)
    with connected(factory, "ab", deadline=60.0) as ends:
        outcome = run(
            ends,
            {"a": lambda mesh: mesh.send("b", "x", sent), "b": lambda mesh: mesh.recv("a", "x")},
        )
    assert np.array_equal(outcome.unwrap()["b"], sent)


def test_received_arrays_are_read_only(factory):
    with connected(factory, "ab") as ends:
        ends["a"].send("b", "x", np.zeros(3))
        came = ends["b"].recv("a", "x")
    with pytest.raises(ValueError, match="read-only"):
        came[0] = 1


@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
def test_the_senders_array_stays_its_own(factory, shape):
    sent = example("float64", shape)
    before = sent.copy()
    with connected(factory, "ab") as ends:
        ends["a"].send("b", "x", sent)
        assert sent.flags.writeable
        ends["b"].recv("a", "x")
    assert sent.flags.writeable
    assert_same(sent, before)


def test_a_missed_deadline_names_who_what_and_since_when(factory):
    with connected(factory, "abc") as ends:
        ends["b"].send("a", "another tag", {})
        ends["c"].send("a", "the tag", {})
        began = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"\d(\.\d+)? s\b") as caught:
            ends["a"].recv("b", "the tag", 0.25)
        waited = time.monotonic() - began
    assert 0.25 <= waited < PROMPT
    assert isinstance(caught.value, TimeoutError)
    assert str(caught.value).startswith("a: ")
    for word in ("from b", "'the tag'", "0.25 s"):
        assert word in str(caught.value)


def test_the_meshs_own_deadline_holds_where_none_is_given(factory):
    with (
        connected(factory, "ab", deadline=0.2) as ends,
        pytest.raises(DeadlineExceeded, match=r"within 0\.2 s"),
    ):
        ends["a"].recv("b", "x")


def test_a_wait_can_be_tried_again(factory):
    with connected(factory, "ab") as ends:
        with pytest.raises(DeadlineExceeded):
            ends["b"].recv("a", "x", 0.05)
        ends["a"].send("b", "x", {"late": True})
        assert ends["b"].recv("a", "x", 5.0) == {"late": True}


def test_a_message_that_lies_there_needs_no_time(factory):
    with connected(factory, "ab") as ends:
        ends["a"].send("b", "first", {})
        ends["a"].send("b", "x", {"here": 1})
        ends["b"].recv("a", "first")
        deadline = time.monotonic() + PROMPT
        while time.monotonic() < deadline:
            try:
                assert ends["b"].recv("a", "x", 0) == {"here": 1}
                break
            except DeadlineExceeded:
                continue
        else:
            pytest.fail("a timeout of 0 never sees the message")


def test_a_failing_party_ends_the_waits_of_all_others(factory):
    """Also of who waits for somebody else, since that one will not get on either."""
    with connected(factory, "abc", deadline=60.0) as ends:
        began = time.monotonic()

        def failing(mesh):
            settle()
            raise ValueError("column 'age' has a NaN")

        outcome = run(
            ends,
            {
                "a": lambda mesh: mesh.recv("b", "x"),
                "b": lambda mesh: mesh.recv("c", "y"),
                "c": failing,
            },
        )
        assert time.monotonic() - began < PROMPT
    assert isinstance(outcome.errors["c"], ValueError)
    for name, tag in (("a", "'x'"), ("b", "'y'")):
        error = outcome.errors[name]
        assert isinstance(error, PeerStopped)
        assert isinstance(error, ConnectionError)
        assert tag in str(error)
        assert "stopped" in str(error)
    # Whoever of them noticed first, the one that began it is named with its reason.
    named = [str(outcome.errors[name]) for name in "ab"]
    assert any("c stopped" in text and "column 'age' has a NaN" in text for text in named)


def test_a_wait_that_begins_after_a_failure_ends_at_once(factory):
    with connected(factory, "ab", deadline=60.0) as ends:
        ends["b"].fail("out of memory")
        began = time.monotonic()
        with pytest.raises(PeerStopped, match=r"b stopped \(out of memory\)"):
            ends["a"].recv("b", "x")
        assert time.monotonic() - began < PROMPT


def test_what_was_sent_before_a_failure_can_still_be_read(factory):
    with connected(factory, "ab") as ends:
        ends["b"].send("a", "x", {"before": 1})
        ends["b"].fail("out of memory")
        assert ends["a"].recv("b", "x") == {"before": 1}


def test_who_failed_is_not_told_of_its_own_failure(factory):
    with connected(factory, "ab") as ends:
        ends["a"].fail("mine")
        with pytest.raises(DeadlineExceeded):
            ends["a"].recv("b", "x", 0.05)


def test_a_closed_party_ends_the_waits_for_it_only(factory):
    with connected(factory, "abc", deadline=60.0) as ends:

        def closing(mesh):
            settle()
            mesh.close()

        def later(mesh):
            settle()
            settle()
            mesh.send("b", "y", {"still": "here"})

        began = time.monotonic()
        outcome = run(
            ends,
            {"b": lambda mesh: mesh.recv("c", "y"), "c": later, "a": closing},
        )
        assert outcome.unwrap()["b"] == {"still": "here"}
        with pytest.raises(PeerStopped, match=r"(?s)a .*'x'") as caught:
            ends["b"].recv("a", "x")
        assert time.monotonic() - began < PROMPT
    assert "ended" in str(caught.value)


def test_what_was_sent_before_closing_can_still_be_read(factory):
    with connected(factory, "ab") as ends:
        for i in range(3):
            ends["a"].send("b", "x", {"i": i})
        ends["a"].close()
        ends["a"].close()
        assert [ends["b"].recv("a", "x")["i"] for _ in range(3)] == [0, 1, 2]
        with pytest.raises(PeerStopped):
            ends["b"].recv("a", "x")


@pytest.mark.parametrize("stop", ["close", "fail"])
def test_sending_to_a_party_that_ended_does_not_hang(factory, stop):
    with connected(factory, "ab", deadline=60.0, capacity=100) as ends:
        ends["b"].close() if stop == "close" else ends["b"].fail("why")
        began = time.monotonic()
        # A transport may refuse, or drop what nobody will read.
        with suppress(PeerStopped):
            for _ in range(5):
                ends["a"].send("b", "x", np.zeros(100))
        assert time.monotonic() - began < PROMPT


@pytest.mark.parametrize("name", ["zoe", "a", "", "B"])
def test_only_other_parties_can_be_written_to_or_waited_for(factory, name):
    with connected(factory, "ab") as ends:
        for call in (
            lambda: ends["a"].send(name, "x", {}),
            lambda: ends["a"].recv(name, "x"),
            lambda: ends["a"].recv_array(name, "x", np.uint8, ()),
        ):
            with pytest.raises(MeshError, match=rf"a: '{name}' is not another party.*\['b'\]"):
                call()
        assert ends["a"].traffic.frames_sent == ends["a"].traffic.frames_received == 0


def test_what_the_wire_refuses_is_not_sent(factory):
    with connected(factory, "ab") as ends:
        for payload in (np.zeros(2, np.float16), np.array([None]), {"x": object()}):
            with pytest.raises(WireError):
                ends["a"].send("b", "x", payload)
        with pytest.raises(WireError, match="tag"):
            ends["a"].send("b", "", {})
        assert ends["a"].traffic.frames_sent == 0
        with pytest.raises(DeadlineExceeded):
            ends["b"].recv("a", "x", 0.05)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (np.zeros(3, np.uint16), "uint16 (3,)"),
        (np.zeros((3, 1), np.uint8), "uint8 (3, 1)"),
        (np.zeros(4, np.uint8), "uint8 (4,)"),
        ({"x": 1}, "a structured message"),
    ],
)
def test_an_array_of_another_kind_is_refused(factory, sent, said):
    with connected(factory, "ab") as ends:
        ends["a"].send("b", "the tag", sent)
        with pytest.raises(MeshError, match=r"b: a sent .*'the tag', expected uint8 \(3,\)") as e:
            ends["b"].recv_array("a", "the tag", "uint8", (3,))
        assert said in str(e.value)
        ends["a"].send("b", "the tag", np.arange(3, dtype=np.uint8))
        assert ends["b"].recv_array("a", "the tag", "uint8", (3,)).tolist() == [0, 1, 2]


def test_traffic_counts_whole_frames(factory):
    payloads = [np.zeros(()), np.zeros((5, 7), np.uint16), np.zeros(0), {}, {"key": "value"}]
    sizes = []
    for payload in payloads:
        prefix, body = wire.frame("a", "b", "some tag", payload).buffers()
        sizes.append(len(prefix) + body.nbytes)
    with connected(factory, "ab") as ends:
        assert [ends["a"].send("b", "some tag", payload) for payload in payloads] == sizes
        for _ in payloads[1:]:
            ends["b"].recv("a", "some tag")
        sender, receiver = ends["a"].traffic, ends["b"].traffic
        assert (sender.frames_sent, sender.bytes_sent) == (5, sum(sizes))
        assert (receiver.frames_received, receiver.bytes_received) == (4, sum(sizes[:-1]))
        assert (sender.frames_received, receiver.frames_sent) == (0, 0)
        assert (sender.bytes_received, receiver.bytes_sent) == (0, 0)
    assert sizes[0] > 8
    assert sizes[1] - sizes[2] >= 70


def test_traffic_of_several_threads_is_all_counted(factory):
    with connected(factory, "ab") as ends:
        size = wire.frame("a", "b", "x", np.zeros(4)).size

        def work():
            for _ in range(100):
                ends["a"].send("b", "x", np.zeros(4))

        join([start(f"thread {i}", work) for i in range(4)])
        assert ends["a"].traffic.bytes_sent == 400 * size


def test_a_fast_sender_waits_for_its_receiver(factory):
    payload = np.zeros(100, np.uint8)
    size = wire.frame("a", "b", "x", payload).size
    capacity = 3 * size + size // 2
    begun = 0
    with connected(factory, "ab", deadline=60.0, capacity=capacity) as ends:

        def sending():
            nonlocal begun
            for i in range(10):
                ends["a"].send("b", "x", payload + np.uint8(i))
                begun = i + 1

        thread = start("sender", sending)
        settle()
        settle()
        assert 1 <= begun <= 3
        assert [int(ends["b"].recv("a", "x")[0]) for _ in range(10)] == list(range(10))
        join([thread])
        assert begun == 10


def test_the_capacity_is_each_links_own(factory):
    with connected(factory, "abc", deadline=5.0, capacity=250) as ends:
        for peer in "bc":
            ends["a"].send(peer, "x", np.zeros(20, np.uint8))
        ends["b"].send("a", "x", np.zeros(20, np.uint8))
        ends["b"].send("c", "x", np.zeros(20, np.uint8))
        assert ends["c"].recv("b", "x").size == 20


def test_a_single_message_above_the_capacity_passes(factory):
    with connected(factory, "ab", deadline=60.0, capacity=10) as ends:
        for i in range(3):
            ends["a"].send("b", "x", np.full(1000, i))
            assert ends["b"].recv("a", "x")[0] == i


def test_a_sender_that_waits_for_room_has_a_deadline_too(factory):
    with connected(factory, "ab", deadline=0.2, capacity=10) as ends:
        ends["a"].send("b", "the tag", np.zeros(1000))
        with pytest.raises(DeadlineExceeded, match=r"(?s)b.*'the tag'.*0\.2 s"):
            ends["a"].send("b", "the tag", np.zeros(1000))
        assert ends["a"].traffic.frames_sent == 1


def test_a_failure_ends_the_wait_for_room(factory):
    with connected(factory, "abc", deadline=60.0, capacity=10) as ends:

        def failing(mesh):
            settle()
            raise KeyError("gone")

        def sending(mesh):
            for _ in range(2):
                mesh.send("b", "x", np.zeros(1000))

        began = time.monotonic()
        outcome = run(ends, {"a": sending, "c": failing})
        assert time.monotonic() - began < PROMPT
    with pytest.raises(PeerStopped, match=r"c stopped \(KeyError: 'gone'\)"):
        raise outcome.errors["a"]


def test_one_end_may_wait_for_two_things_at_once(factory):
    """A program may receive in one thread and send, or receive, in another."""
    raised: dict[str, BaseException] = {}
    with connected(factory, "abc", deadline=60.0) as ends:

        def waiting(peer: str, timeout: float) -> None:
            try:
                ends["a"].recv(peer, "x", timeout)
            except BaseException as error:
                raised[peer] = error

        threads = [
            start("short", lambda: waiting("b", 0.1)),
            start("long", lambda: waiting("c", 0.4)),
        ]
        join(threads)
    assert {name: type(error) for name, error in raised.items()} == {
        "b": DeadlineExceeded,
        "c": DeadlineExceeded,
    }
    assert all(f"from {peer}" in str(error) for peer, error in raised.items())


def test_the_failure_of_a_party_ends_every_wait_unless_it_is_excused(factory):
    with connected(factory, "abc") as ends:
        ends["c"].fail("out of memory")
        with pytest.raises(PeerStopped, match="c stopped") as caught:
            ends["a"].recv("b", "x", 10)
        assert caught.value.peer == "c"
        ends["a"].excuse("c")
        ends["b"].send("a", "x", np.arange(3))
        assert_same(ends["a"].recv("b", "x", 10), np.arange(3))
        # Who is excused is still missed by those who wait for it.
        with pytest.raises(PeerStopped) as caught:
            ends["a"].recv("c", "x", 10)
        assert caught.value.peer == "c"


def test_waits_for_others_go_on_after_a_party_was_excused(factory):
    with connected(factory, "abc") as ends:
        ends["a"].excuse("c")
        ends["c"].fail("out of memory")
        came = []
        waiting = start("a", lambda: came.append(ends["a"].recv("b", "x", 20)))
        settle()
        ends["b"].send("a", "x", np.arange(3))
        join([waiting])
        assert_same(came[0], np.arange(3))


def test_only_another_party_can_be_excused(factory):
    with connected(factory, "ab") as ends, pytest.raises(MeshError, match="not another party"):
        ends["a"].excuse("a")
