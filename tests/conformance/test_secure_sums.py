"""The duties of every secure sum: exact, learned by its receiver only, hidden on the way."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.meshes import connected, local, taped
from tests.conformance.running import run
from tests.conformance.sums import SUMS, TAG, Session, every_padded_sum, every_sum, views
from tests.conformance.uniformity import ENOUGH, THRESHOLD, check_uniform, check_unrelated, p_value
from vertikal.errors import InputError
from vertikal.secure.keys.keystream import Keystream
from vertikal.secure.keys.prg import uniform_elements

WIDTHS = ("uint8", "uint16", "uint32", "uint64")
NAMES = ("bank", "alma", "shop", "clinic", "zoo", "mill", "yard")
"""Not in alphabetical order: the order of a group and that of the names are different things."""


def drawn(names, dtype, shape, seed=0):
    draw = np.random.default_rng(seed)
    top = np.iinfo(dtype).max
    return {name: draw.integers(0, top, shape, dtype, endpoint=True) for name in names}


def plain_sum(values):
    """The sum in Python's integers, reduced at the end."""
    arrays = list(values.values())
    modulus = int(np.iinfo(arrays[0].dtype).max) + 1
    return sum(array.astype(object) for array in arrays) % modulus


@every_sum
@settings(max_examples=25)
@given(data=st.data())
def test_the_sum_is_exact_and_only_its_receiver_gets_it(kind, data):
    group = data.draw(st.permutations(NAMES[: data.draw(st.integers(kind.fewest, 7))]))
    to = data.draw(st.sampled_from(group))
    dtype = data.draw(st.sampled_from(WIDTHS))
    shape = data.draw(st.sampled_from([(), (0,), (1,), (5,), (2, 3), (2, 1, 2)]))
    top = int(np.iinfo(dtype).max)
    values = {}
    for name in group:
        flat = st.lists(
            st.sampled_from([0, 1, top, top // 2]) | st.integers(0, top),
            min_size=int(np.prod(shape)),
            max_size=int(np.prod(shape)),
        )
        values[name] = np.array(data.draw(flat), dtype).reshape(shape)
    with connected(local, group) as ends:
        got = Session.begin(kind, ends).sum(values, to)
    total = got.pop(to)
    assert total is not None
    assert (total.dtype, total.shape) == (np.dtype(dtype), shape)
    assert np.array_equal(total.astype(object), plain_sum(values))
    assert set(got.values()) == {None}


@every_sum
@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("count", range(2, 8))
def test_every_width_and_number_of_parties(kind, dtype, count):
    group = NAMES[: max(count, kind.fewest)]
    values = drawn(group, dtype, (3, 2))
    with connected(local, group) as ends:
        got = Session.begin(kind, ends).sum(values, group[-1])
    assert np.array_equal(got[group[-1]].astype(object), plain_sum(values))


@every_sum
def test_a_sum_longer_than_one_tile_of_the_stream(kind):
    group = NAMES[:3]
    values = drawn(group, "uint16", (1 << 17) + 3)
    with connected(local, group) as ends:
        got = Session.begin(kind, ends).sum(values, "alma")
    expected = sum(value.astype(np.uint64) for value in values.values()).astype(np.uint16)
    assert np.array_equal(got["alma"], expected)


@every_sum
def test_sums_may_be_repeated_with_other_receivers(kind):
    group = NAMES[:4]
    with connected(local, group) as ends:
        session = Session.begin(kind, ends)
        for i in range(12):
            to = group[i * i % 4]
            values = drawn(group, WIDTHS[i % 4], (i % 5, 2), seed=i)
            got = session.sum(values, to)
            assert [name for name, value in got.items() if value is not None] == [to]
            assert np.array_equal(got[to].astype(object), plain_sum(values))


@every_sum
def test_some_of_the_parties_may_sum(kind):
    group = NAMES[4:0:-1]
    values = drawn(group, "uint32", 6)
    with taped(NAMES) as (ends, tape):
        session = Session.begin(kind, ends, group)
        assert np.array_equal(session.sum(values, "shop")["shop"].astype(object), plain_sum(values))
        senders = {frame.header.sender for frame in tape if frame.header.tag.startswith(TAG)}
        assert senders <= set(group)


@every_sum
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "bool"])
def test_what_is_no_ring_element_is_refused_before_anything_is_sent(kind, dtype):
    with taped(NAMES[:3], deadline=60.0) as (ends, tape):
        session = Session.begin(kind, ends)
        before = len(tape)
        for name in session.group:
            with pytest.raises(InputError, match=rf"values must be ring elements .*{dtype}"):
                session.sums[name].sum(np.ones(3, dtype), "bank")
        assert len(tape) == before


@every_sum
@pytest.mark.parametrize("to", ["zoo", "nobody", ""])
def test_a_receiver_outside_the_group_is_refused_before_anything_is_sent(kind, to):
    with taped((*NAMES[:3], "zoo"), deadline=60.0) as (ends, tape):
        session = Session.begin(kind, ends, NAMES[:3])
        before = len(tape)
        for name in session.group:
            with pytest.raises(InputError, match=r"to must be one of the summing parties"):
                session.sums[name].sum(np.ones(3, np.uint8), to)
        assert len(tape) == before


@every_sum
@pytest.mark.parametrize(
    "spoil",
    [
        lambda good: np.ones((4, 4), np.uint16)[:, :2],
        np.asfortranarray,
        lambda good: np.broadcast_to(np.uint16(1), (4, 2)),
        lambda good: good.astype(">u2"),
        lambda good: good.astype(np.float32),
    ],
    ids=["not contiguous", "fortran", "read-only", "big-endian", "float"],
)
def test_a_refused_or_odd_input_never_makes_a_wrong_sum(kind, spoil):
    """An array that cannot be masked in place is summed rightly, or refused; and a party that was
    refused can try again with a better array, since nothing of that sum has been used up."""
    good = np.arange(8, dtype=np.uint16).reshape(4, 2)
    with connected(local, NAMES[:3], deadline=60.0) as ends:
        session = Session.begin(kind, ends)

        def add(name):
            summation = session.sums[name]
            if name == "shop":
                try:
                    return summation.sum(spoil(good), "bank")
                except (InputError, ValueError):
                    return summation.sum(good.copy(), "bank")
            return summation.sum(good.copy(), "bank")

        got = run(ends, lambda mesh: add(mesh.me)).unwrap()["bank"]
    accepted = spoil(good).astype(np.uint16) + 2 * good
    assert got.tolist() in (accepted.tolist(), (3 * good).tolist())


def inputs(group, shape):
    """Inputs that a weak mask would show."""
    zeros = {name: np.zeros(shape, np.uint8) for name in group}
    one_hot = {name: np.eye(1, shape, i, dtype=np.uint8)[0] for i, name in enumerate(group)}
    return {
        "all zero": zeros,
        "all one": {name: value + np.uint8(1) for name, value in zeros.items()},
        "all 255": {name: value + np.uint8(255) for name, value in zeros.items()},
        "one hot": one_hot,
        "the same everywhere": {name: np.arange(shape).astype(np.uint8) for name in group},
        "only the receiver": {**zeros, group[0]: np.full(shape, 77, np.uint8)},
    }


SPAN = ENOUGH


def transcript(kind, group=NAMES[:4], rounds=2):
    """All that travelled in several sums of each of the inputs, by what was summed."""
    with taped(group) as (ends, tape):
        session = Session.begin(kind, ends)
        return {
            what: [session.frames(tape, values, group[0]) for _ in range(rounds)]
            for what, values in inputs(group, SPAN).items()
        }


def check_transcript(kind, runs):
    """No adversary finds anything but uniform and unrelated bytes in what it sees."""
    for view in views(kind, runs["all zero"][0]):
        for sums in runs.values():
            check_uniform([frames[key] for frames in sums for key in view])
            check_unrelated(*([frames[key] for key in view] for frames in sums[:2]))
        everything = [
            frames[key].tobytes() for sums in runs.values() for frames in sums for key in view
        ]
        assert len(set(everything)) == len(everything), "a frame came twice"


BROKEN = r"not uniform|came twice"


@every_sum
def test_frames_are_uniform_whatever_is_summed_and_unrelated_from_sum_to_sum(kind):
    check_transcript(kind, transcript(kind))


@every_sum
def test_frames_stay_uniform_when_inputs_are_what_was_sent_before(kind):
    """A party that could make a peer sum a frame of the last round must not get the mask back."""
    group = NAMES[:4]
    with taped(group) as (ends, tape):
        session = Session.begin(kind, ends)
        values = {name: np.zeros(SPAN, np.uint8) for name in group}
        first = session.frames(tape, values, "bank")
        again = {**values}
        for (sender, _, _), frame in first.items():
            again[sender] = frame
        second = session.frames(tape, again, "bank")
        negated = {name: np.uint8(0) - value for name, value in again.items()}
        third = session.frames(tape, negated, "bank")
    for view in views(kind, first):
        one, two, three = ([frames[key] for key in view] for frames in (first, second, third))
        check_uniform([*two, *three])
        check_unrelated(one, two)
        check_unrelated(one, three)


@every_padded_sum
def test_a_missing_pad_is_caught(kind, monkeypatch):
    def nothing(stream, out):
        out[:] = bytes(len(out))

    monkeypatch.setattr(Keystream, "fill", nothing)
    for sums in transcript(kind).values():
        with pytest.raises(AssertionError, match=BROKEN):
            check_transcript(kind, {"all zero": sums})


@every_padded_sum
def test_a_pad_used_twice_is_caught(kind, monkeypatch):
    monkeypatch.setattr(
        "vertikal.secure.sums.pads.Keystream", lambda key, number, skip: Keystream(key, 0, skip)
    )
    runs = transcript(kind)
    for sums in runs.values():
        check_uniform(list(sums[0].values()))
        with pytest.raises(AssertionError, match=BROKEN):
            check_transcript(kind, {"all zero": sums})
    # Also where the data differ, so that no frame comes twice: the differences give it away.
    zeros, other = (runs[what][0] for what in ("all zero", "all one"))
    keys = sorted(zeros)
    with pytest.raises(AssertionError, match="differences of frames are not uniform"):
        check_unrelated([zeros[key] for key in keys], [other[key] for key in keys])


def test_masks_of_trees_used_twice_are_caught(monkeypatch):
    def same_masks(key, shape, dtype, *, stream):
        return uniform_elements(key, shape, dtype, stream=0)

    monkeypatch.setattr("vertikal.secure.sums.fdskl_algorithm3.uniform_elements", same_masks)
    with pytest.raises(AssertionError, match=BROKEN):
        check_transcript(SUMS[-1], transcript(SUMS[-1]))


def test_the_measure_of_uniformity_itself():
    draw = np.random.default_rng(0)
    even = np.frombuffer(draw.bytes(SPAN), np.uint8)
    assert p_value([even]) > 1e-3
    assert p_value([np.minimum(even, 250)]) < THRESHOLD
    assert p_value([even & 0xFE]) < THRESHOLD
    with pytest.raises(AssertionError, match="show nothing"):
        p_value([even[:100]])


@every_sum
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_no_partial_sum_travels_unmasked(kind, count):
    """No frame equals anybody's values, or the sum of some parties' values."""
    group = NAMES[: max(count, kind.fewest)]
    values = drawn(group, "uint64", 4, seed=count)
    partials = {total.tobytes() for total in subset_sums(values)}
    with taped(group) as (ends, tape):
        frames = Session.begin(kind, ends).frames(tape, values, group[0])
    assert len(frames) >= len(group) - 1
    assert not partials & {frame.tobytes() for frame in frames.values()}


@every_sum
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_no_party_can_take_the_masks_off_what_reaches_it(kind, count):
    """Adding and subtracting the frames that one party receives gives no sum of fewer parties than
    all the others, and at anybody but the receiver no sum at all."""
    group = NAMES[: max(count, kind.fewest)]
    values = drawn(group, "uint64", 2, seed=count)
    to = group[0]
    with taped(group) as (ends, tape):
        frames = Session.begin(kind, ends).frames(tape, values, to)
    for reader in group:
        others = {name: value for name, value in values.items() if name != reader}
        hidden = {total.tobytes() for total in subset_sums(others, proper=reader == to)}
        seen = [frame for (_, receiver, _), frame in frames.items() if receiver == reader]
        for signs in product((0, 1, -1), repeat=len(seen)):
            combined = np.zeros(2, np.uint64)
            for sign, frame in zip(signs, seen, strict=True):
                combined += np.array(sign).astype(np.uint64) * frame
            assert combined.tobytes() not in hidden, f"{reader} can unmask a sum of some parties"


def subset_sums(values, proper=False):
    """The sums of all non-empty sets of parties; without the set of all where only ``proper``."""
    names = list(values)
    for size in range(1, len(names) + (not proper)):
        for chosen in combinations(names, size):
            yield np.add.reduce([values[name] for name in chosen])
