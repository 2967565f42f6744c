"""The tape holds what left each party, as bytes."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.errors import PeerStopped
from vertikal.mesh import RecordingMesh, Tape, local_meshes, wire


def recorded(names="abc"):
    tape = Tape()
    return {name: RecordingMesh(end, tape) for name, end in local_meshes(names).items()}, tape


def test_an_empty_tape():
    _, tape = recorded()
    assert len(tape) == 0
    assert list(tape) == []
    assert tape.arrays("") == []


def test_frames_come_in_the_order_in_which_they_were_sent():
    ends, tape = recorded()
    ends["a"].send("b", "x", np.arange(3, dtype=np.uint8))
    ends["b"].send("c", "y", {"k": "v"})
    ends["c"].send("a", "x", np.zeros(()))
    assert len(tape) == 3
    assert [(f.header.sender, f.header.receiver, f.header.tag) for f in tape] == [
        ("a", "b", "x"),
        ("b", "c", "y"),
        ("c", "a", "x"),
    ]
    first, second, third = (frame.payload() for frame in tape)
    assert first.tolist() == [0, 1, 2]
    assert second == {"k": "v"}
    assert third.shape == ()
    assert sum(f.size for f in tape) == sum(end.traffic.bytes_sent for end in ends.values())


def test_the_tape_keeps_what_was_sent_even_if_the_array_changes_later():
    ends, tape = recorded()
    values = np.arange(3)
    ends["a"].send("b", "x", values)
    values[:] = 7
    assert tape.arrays("x")[0].tolist() == [0, 1, 2]


def test_a_frame_is_on_the_tape_before_its_receiver_can_act_on_it():
    """Else an answer may stand before its question, or the tape hold what the receiver wrote."""
    plain, tape = local_meshes("ab"), Tape()
    seen, values = [], np.arange(3)

    class Hasty(RecordingMesh):
        def put_frame(self, to, frame):
            seen.append(len(tape))
            values[:] = 7
            super().put_frame(to, frame)

    end = RecordingMesh(Hasty(plain["a"], Tape()), tape)
    end.send("b", "x", values)
    assert seen == [1]
    assert tape.arrays("x")[0].tolist() == [0, 1, 2]


def test_arrays_are_found_by_tag_sender_and_receiver():
    ends, tape = recorded()
    for sender, receiver, tag in [("a", "b", "x/1"), ("a", "c", "x/2"), ("b", "c", "y")]:
        ends[sender].send(receiver, tag, np.array([ord(sender), ord(receiver)]))
    ends["a"].send("b", "x/3", {"not": "an array"})

    def found(*where, **who):
        return [tuple(map(chr, array)) for array in tape.arrays(*where, **who)]

    assert found("") == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found("x") == [("a", "b"), ("a", "c")]
    assert found("x/2") == [("a", "c")]
    assert found("", sender="a") == [("a", "b"), ("a", "c")]
    assert found("", receiver="c") == [("a", "c"), ("b", "c")]
    assert found("x", sender="a", receiver="c") == [("a", "c")]
    assert found("z") == []


def test_recording_changes_no_frame():
    plain = local_meshes("ab")
    ends, tape = recorded("ab")
    for pair in (plain, ends):
        pair["a"].send("b", "x", np.arange(4))
        assert pair["b"].recv("a", "x").tolist() == [0, 1, 2, 3]
    assert ends["a"].traffic.bytes_sent == plain["a"].traffic.bytes_sent
    (frame,) = tape
    assert frame.size == wire.frame("a", "b", "x", np.arange(4)).size


def test_the_end_of_a_party_is_passed_on():
    ends, _ = recorded("ab")
    ends["a"].close()
    with pytest.raises(PeerStopped, match="a has ended without sending 'x'"):
        ends["b"].recv("a", "x", 5.0)
    ends["b"].fail("why")
    with pytest.raises(PeerStopped, match=r"b stopped \(why\)"):
        ends["a"].recv("b", "x", 5.0)
