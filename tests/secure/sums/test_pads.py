"""One-time pads: each once, from a sequence that cannot be wound back."""

from __future__ import annotations

import copy
import pickle
import queue

import numpy as np
import pytest

from tests.conformance.running import join, run, start
from vertikal.errors import InputError, PadReused, SecrecyError
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.sums.pads import OneTimePad, PaddedSum, PadSequence, SumPads, summable

KEY = bytes(range(32))


def fresh_keys():
    """The keys of one run, nothing claimed yet."""
    return PairKeys("a", "job", {"b": KEY, "c": bytes(32)})


def pad_bytes(pad, count=64):
    values = np.zeros(count, np.uint8)
    pad.apply(values)
    return values.tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 5), ((1 << 18) + 9,)])
def test_a_pad_is_the_stream_added_or_subtracted(dtype, shape):
    values = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    values = np.asarray(values)
    pad = prg.uniform_elements(KEY, shape, dtype, stream=4)
    added, taken = values.copy(), values.copy()
    OneTimePad(KEY, 4, 1).apply(added)
    OneTimePad(KEY, 4, -1).apply(taken)
    assert np.array_equal(added, values + pad)
    assert np.array_equal(taken, values - pad)


def test_a_pad_can_be_applied_once_only():
    pad = OneTimePad(KEY, 0, 1)
    values = np.zeros(8, np.uint8)
    pad.apply(values)
    after = values.copy()
    with pytest.raises(PadReused, match="a pad hides one message only") as caught:
        pad.apply(values)
    assert isinstance(caught.value, SecrecyError)
    assert np.array_equal(values, after)


def test_a_pad_of_no_bytes_is_spent_too():
    pad = OneTimePad(KEY, 0, 1)
    pad.apply(np.zeros(0, np.uint8))
    with pytest.raises(PadReused):
        pad.apply(np.zeros(8, np.uint8))


@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
@pytest.mark.parametrize("together", [False, True], ids=["apart", "in place"])
def test_a_message_is_enciphered_bit_by_bit_and_once(dtype, shape, together):
    values = np.asarray(np.random.default_rng(0).integers(0, 200, shape).astype(dtype))
    plain = values.copy()
    out = values if together else np.zeros_like(values)
    pad = OneTimePad(KEY, 4, -1)
    pad.encipher(values, out)
    assert np.array_equal(out, plain ^ prg.uniform_elements(KEY, shape, dtype, stream=4))
    assert together or np.array_equal(values, plain)
    for again in (pad.encipher, lambda source, out: pad.apply(out)):
        with pytest.raises(PadReused, match="a pad hides one message only"):
            again(values, out)
    # The other end of the pair, whose sign is the other, reads it.
    OneTimePad(KEY, 4, 1).encipher(out, out)
    assert np.array_equal(out, plain)


@pytest.mark.parametrize(
    "values",
    [np.zeros((4, 4), np.uint8)[:, :2], np.zeros((2, 3), np.uint16).T],
    ids=["part of an array", "transposed"],
)
def test_values_that_cannot_be_masked_in_place_are_refused(values):
    with pytest.raises(InputError, match="values must be a contiguous array, got strides"):
        OneTimePad(KEY, 0, 1).apply(values)
    for source, out in ((values, values.copy()), (values.copy(), values)):
        with pytest.raises(InputError, match="values must be a contiguous array, got strides"):
            OneTimePad(KEY, 0, 1).encipher(source, out)
    assert not values.any()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_values_that_can_be_summed_in_place_are_not_copied(dtype):
    """A label party has its sums written into the part of its cache that it hands in."""
    part = np.zeros((6, 4), dtype)[2:5]
    assert summable(part, "a", ("a", "b")) is part
    swapped = part.astype(part.dtype.newbyteorder())
    assert summable(swapped, "a", ("a", "b")).dtype.isnative


def test_a_sequence_never_repeats_a_pad():
    keys = fresh_keys()
    sequence = PadSequence(keys, "b", "x")
    pads = [pad_bytes(sequence.take()) for _ in range(200)]
    assert len(set(pads)) == 200
    assert pads[:3] == [
        prg.uniform_elements(keys.key("b", "pads", "x"), (64,), np.uint8, stream=number).tobytes()
        for number in range(3)
    ]


def test_sequences_of_other_peers_and_purposes_are_others():
    keys = fresh_keys()
    sequences = [
        PadSequence(keys, "b"),
        PadSequence(keys, "b", "x"),
        PadSequence(keys, "b", "xy"),
        PadSequence(keys, "b", "x", "y"),
        PadSequence(keys, "c", "x"),
        PadSequence(PairKeys("a", "job 2", {"b": KEY}), "b", "x"),
    ]
    assert len({pad_bytes(sequence.take()) for sequence in sequences}) == len(sequences)


def test_two_sequences_for_one_purpose_are_refused():
    """They would hand out the same pads."""
    keys = fresh_keys()
    PadSequence(keys, "b", "x")
    with pytest.raises(PadReused, match=r"the key with b for .* is in use already"):
        PadSequence(keys, "b", "x")
    assert PadSequence(fresh_keys(), "b", "x").take() is not None


def test_the_pads_of_a_pair_cancel():
    mine = PadSequence(PairKeys("a", "job", {"b": KEY}), "b", "x")
    theirs = PadSequence(PairKeys("b", "job", {"a": KEY}), "a", "x")
    for _ in range(3):
        values = np.arange(50, dtype=np.uint16)
        mine.take().apply(values)
        assert not np.array_equal(values, np.arange(50))
        theirs.take().apply(values)
        assert np.array_equal(values, np.arange(50))


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        lambda sequence: copy.deepcopy([sequence]),
        pickle.dumps,
        lambda sequence: pickle.dumps(sequence, 0),
        lambda sequence: pickle.dumps({"inside": sequence}),
    ],
    ids=["copy", "deepcopy", "deepcopy inside", "pickle", "pickle 0", "pickle inside"],
)
def test_a_sequence_cannot_be_copied(duplicate):
    with pytest.raises(PadReused, match="cannot be copied"):
        duplicate(PadSequence(fresh_keys(), "b", "x"))


def test_threads_that_take_pads_at_once_get_different_ones():
    sequence = PadSequence(fresh_keys(), "b", "x")
    taken: list[list[bytes]] = [[] for _ in range(4)]

    def take(into):
        for _ in range(250):
            into.append(pad_bytes(sequence.take(), 16))

    join([start(f"taker {i}", lambda into=into: take(into)) for i, into in enumerate(taken)])
    pads = [pad for some in taken for pad in some]
    assert len(pads) == len(set(pads)) == 1000


def test_the_worked_example_of_the_docstring(monkeypatch):
    group = ("a", "b", "c")
    secrets = {"ab": bytes([1] * 32), "ac": bytes([2] * 32), "bc": bytes([3] * 32)}
    shared = {
        name: {other: secrets["".join(sorted(name + other))] for other in group if other != name}
        for name in group
    }
    pads = {}
    for pair, value in {"ab": 200, "ac": 17, "bc": 90}.items():
        keys = PairKeys(pair[0], "job", shared[pair[0]])
        pads[keys.key(pair[1], "pads", "example", *group)] = value

    class Fixed:
        def __init__(self, key, number, skip):
            self.value = pads[key]

        def fill(self, out):
            out[:] = bytes([self.value]) * len(out)

    monkeypatch.setattr("vertikal.secure.sums.pads.Keystream", Fixed)
    holds = {"a": 5, "b": 6, "c": 7}
    tape = Tape()
    ends = {name: RecordingMesh(end, tape) for name, end in local_meshes(group).items()}

    def program(mesh):
        keys = PairKeys(mesh.me, "job", shared[mesh.me])
        summation = PaddedSum(mesh, keys, group, "example", "star")
        return summation.sum(np.array([holds[mesh.me]], np.uint8), "c")

    got = run(ends, program).unwrap()
    assert got["c"].tolist() == [18]
    sent = {frame.header.sender: frame.payload().tolist() for frame in tape}
    assert sent == {"a": [222], "b": [152]}


def test_the_party_whose_name_comes_first_adds():
    """Any order of the group: both ends must decide alike."""
    keys = {me: PairKeys(me, "j", {peer: KEY}) for me, peer in (("a", "b"), ("b", "a"))}
    pad = prg.uniform_elements(keys["a"].key("b", "pads"), (5,), np.uint8, stream=0)
    for me, peer, masked in (("a", "b", pad), ("b", "a", 0 - pad)):
        values = np.zeros(5, np.uint8)
        PadSequence(keys[me], peer).take().apply(values)
        assert np.array_equal(values, masked)


@pytest.mark.parametrize("shape", ["star", "tree", "cycle"])
def test_a_sum_among_four_parties_sends_three_messages_of_its_own_size(shape):
    tape = Tape()
    names = ("a", "b", "c", "d")
    ends = {name: RecordingMesh(end, tape) for name, end in local_meshes(names).items()}

    def program(mesh):
        shared = {peer: bytes([ord(mesh.me) ^ ord(peer)] * 32) for peer in mesh.peers}
        summation = PaddedSum(mesh, PairKeys(mesh.me, "j", shared), names, "x", shape)
        return summation.sum(np.ones(100, np.uint8), "b")

    assert run(ends, program).unwrap()["b"].tolist() == [4] * 100
    assert [frame.payload_size for frame in tape] == [100] * 3
    assert len({frame.header.tag for frame in tape}) == 1


def test_what_came_apart_is_in_the_sum_already():
    names, tape = ("a", "b", "c"), Tape()
    ends = {name: RecordingMesh(end, tape) for name, end in local_meshes(names).items()}
    apart: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()

    def program(mesh):
        shared = {peer: bytes([ord(mesh.me) ^ ord(peer)] * 32) for peer in mesh.peers}
        summation = PaddedSum(mesh, PairKeys(mesh.me, "j", shared), names, "x")
        values, pending = np.full(50, ord(mesh.me), np.uint8), summation.begin()
        pending.mask(values)
        if mesh.me == "c":
            pending.spend()
            apart.put(values)
            return None
        if mesh.me == "a":
            values += apart.get()
        return summation.finish(pending, values, "a", {"c"})

    total = run(ends, program).unwrap()["a"]
    assert total.tolist() == [sum(map(ord, names)) % 256] * 50
    assert [(frame.header.sender, frame.header.receiver) for frame in tape] == [("b", "a")]


@pytest.mark.parametrize("skip", [0, 16, 5, 1000, (1 << 18) + 3])
def test_pads_of_a_part_are_the_tail_of_the_whole(skip):
    """A worker that computes some rows of a block has their part of the block's pads."""
    pads = SumPads(((KEY, 3, 1), (bytes(32), 0, -1)))
    whole = np.zeros((1 << 18) + 2000, np.uint8)
    pads(whole)
    tail = np.zeros(len(whole) - skip, np.uint8)
    pads.after(skip // 2).after(skip - skip // 2)(tail)
    np.testing.assert_array_equal(tail, whole[skip:])


@pytest.mark.parametrize("signs", [(), (1,), (-1,), (1, -1), (-1, 1, -1), (-1, -1)])
@pytest.mark.parametrize("skip", [0, 5])
@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
def test_elements_added_to_pads_are_masked_as_by_adding_the_pads(signs, skip, dtype, monkeypatch):
    monkeypatch.setattr("vertikal.secure.sums.pads.TILE", 1 << 18)
    pads = SumPads(tuple((bytes([place] * 32), place, sign) for place, sign in enumerate(signs)))
    size = 4 * (5 + (1 << 18)) // np.dtype(dtype).itemsize + 3  # four tiles, and a rest
    elements = np.random.default_rng(0).integers(0, 200, size).astype(dtype)
    masked, out = elements.copy(), np.full(size, 77, dtype)
    pads.after(4 * skip)(masked)
    pads.after(4 * skip).write(out)
    np.testing.assert_array_equal(out + elements, masked)


def test_pads_taken_ahead_are_those_of_sums_in_turn():
    (ahead, in_turn) = (
        PaddedSum(local_meshes(("a", "b", "c"))["a"], fresh_keys(), tuple("abc"), "x")
        for _ in range(2)
    )
    found = []
    for pending in [ahead.begin() for _ in range(3)]:
        values = np.zeros(40, np.uint8)
        pending.mask(values)
        found.append(values)
    for masked in found:
        expected = np.zeros(40, np.uint8)
        in_turn.begin().mask(expected)
        np.testing.assert_array_equal(masked, expected)
    assert len({values.tobytes() for values in found}) == 3


def test_a_sum_that_was_sent_is_not_sent_again():
    summation = PaddedSum(local_meshes(("a", "b"))["a"], fresh_keys(), ("a", "b"), "x")
    pending = summation.begin()
    assert summation.finish(pending, np.zeros(4, np.uint8), "b") is None
    with pytest.raises(PadReused, match="hide one message only"):
        summation.finish(pending, np.ones(4, np.uint8), "b")


def test_pads_show_no_key_where_they_are_printed():
    assert repr(KEY)[2:-1] not in repr(SumPads(((KEY, 0, 1),)))
