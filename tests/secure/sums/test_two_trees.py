"""FDSKL Algorithm 3, what travels in it, and what it gives away."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from tests.conformance.meshes import taped
from tests.conformance.running import run
from vertikal.errors import SecrecyError
from vertikal.mesh import local_meshes
from vertikal.secure.keys import prg
from vertikal.secure.sums.two_trees import TwoTreesSum

NAMES = ("a", "b", "c", "d", "e", "f", "g")
ROWS, D = 5, 16


def drawn(names, dtype="uint8", rows=ROWS):
    """Projections (rows, D) and offsets (D,) of each party, as ring elements."""
    draw = np.random.default_rng(len(names))
    top = np.iinfo(dtype).max
    return {
        name: (
            draw.integers(0, top, (rows, D), dtype, endpoint=True),
            draw.integers(0, top, D, dtype, endpoint=True),
        )
        for name in names
    }


def ring_sum(arrays):
    arrays = list(arrays)
    return np.add.reduce(arrays, dtype=arrays[0].dtype)


def algorithm_3(ends, drawn_values, to, kept):
    def program(mesh):
        summation = TwoTreesSum(mesh, prg.fresh_key(), mesh.parties, "phases")
        projections, offsets = drawn_values[mesh.me]
        before = offsets.copy()
        got = summation.phase_sum(projections + offsets, offsets, to, kept)
        assert np.array_equal(offsets, before), "the offsets are used again and must stay"
        return got

    return run(ends, program).unwrap()


@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
@pytest.mark.parametrize("count", range(2, 8))
def test_algorithm_3_gives_the_projections_with_one_offset(count, dtype):
    """FDSKL Lemma 3: the output is the sum of all projections plus b of the kept party, exactly."""
    names = NAMES[:count]
    values = drawn(names, dtype)
    for to, kept in [(names[0], names[-1]), (names[-1], names[0]), (names[1], names[0])]:
        with taped(names) as (ends, tape):
            got = algorithm_3(ends, values, to, kept)
            messages = len(tape)
        expected = ring_sum(values[name][0] for name in names) + values[kept][1]
        assert np.array_equal(got.pop(to), expected)
        assert set(got.values()) == {None}
        assert messages == (count - 1) + (count - 2)


def travelled(tape, which):
    """(sender, receiver) -> (whose subtotal it is, the array), for one of the two trees."""
    found = {}
    for frame in tape:
        if frame.header.tag.endswith(f"/{which}"):
            sender, receiver = frame.header.sender, frame.header.receiver
            # A sender has by then received all that its subtotal contains.
            below = [names for (_, to), (names, _) in found.items() if to == sender]
            found[sender, receiver] = frozenset({sender}.union(*below)), frame.payload()
    return found


@pytest.mark.parametrize("count", range(2, 7))
def test_what_travels_over_t1_and_t2(count):
    """Over T1 subtotals of masked projections, over T2 subtotals of masks, one row of them."""
    names = NAMES[:count]
    values = drawn(names)
    with taped(names) as (ends, tape):
        algorithm_3(ends, values, "a", "b")
        t1, t2 = travelled(tape, "t1"), travelled(tape, "t2")
        assert len(tape) == len(t1) + len(t2)
    assert sorted(sender for sender, _ in t1) == sorted(set(names) - {"a"})
    assert sorted(sender for sender, _ in t2) == sorted(set(names) - {"a", "b"})
    for below, frame in t1.values():
        assert np.array_equal(frame, ring_sum(np.add(*values[name]) for name in below))
    for below, frame in t2.values():
        assert np.array_equal(frame, ring_sum(values[name][1] for name in below))
    assert not {below for below, _ in t1.values() if len(below) > 1} & {
        below for below, _ in t2.values()
    }


@pytest.mark.parametrize("count", range(3, 7))
def test_nobody_can_take_the_masks_off_a_part_of_the_sum(count):
    """Adding and subtracting what one party receives over both trees leaves a mask on all."""
    names = NAMES[:count]
    values = drawn(names, "uint64", rows=1)
    with taped(names) as (ends, tape):
        algorithm_3(ends, values, "a", "b")
        frames = [(frame.header.receiver, np.ravel(frame.payload())) for frame in tape]
    for reader in names:
        others = [name for name in names if name != reader]
        hidden = {
            ring_sum(values[name][0][0] for name in chosen).tobytes()
            for size in range(1, len(others) + 1)
            for chosen in combinations(others, size)
        }
        seen = [array for receiver, array in frames if receiver == reader]
        for signs in product((0, 1, -1), repeat=len(seen)):
            parts = [np.array(s).astype(np.uint64) * a for s, a in zip(signs, seen, strict=True)]
            combined = ring_sum([np.zeros(D, np.uint64), *parts])
            assert combined.tobytes() not in hidden, f"{reader} can unmask a part"


def test_no_projection_and_no_kept_offset_travels_bare():
    names = NAMES[:5]
    values = drawn(names)
    with taped(names) as (ends, tape):
        algorithm_3(ends, values, "a", "c")
        sent = {frame.payload().tobytes() for frame in tape}
        from_kept = [frame for frame in tape if frame.header.sender == "c"]
    assert all(projections.tobytes() not in sent for projections, _ in values.values())
    assert values["c"][1].tobytes() not in sent
    assert [frame.header.tag.rpartition("/")[2] for frame in from_kept] == ["t1"]


def test_masks_repeat_over_rows_and_give_differences_away():
    """The published flaw: one mask per direction hides every row, so whoever receives a subtotal
    sees the exact difference between two people's subtotals of projections."""
    names = NAMES[:4]
    values = drawn(names)
    with taped(names) as (ends, tape):
        algorithm_3(ends, values, "a", "b")
        t1 = travelled(tape, "t1")
    assert len(t1) == 3
    for below, frame in t1.values():
        part = ring_sum(values[name][0] for name in below)
        assert not np.array_equal(frame, part)
        assert np.array_equal(frame[1:] - frame[0], part[1:] - part[0])


def test_fresh_masks_do_not_give_differences_away():
    """`sum`, which all but the phases use, draws a mask for every number."""
    names = NAMES[:4]
    values = np.zeros((200, 100), np.uint8)
    with taped(names) as (ends, tape):

        def program(mesh):
            return TwoTreesSum(mesh, prg.fresh_key(), names, "x").sum(values.copy(), "a")

        run(ends, program).unwrap()
        frames = [frame for _, frame in travelled(tape, "t1").values()]
    for frame in frames:
        assert len(np.unique(frame[1:] - frame[:-1])) == 256


def test_a_sum_and_a_phase_sum_may_alternate():
    names = NAMES[:3]
    values = drawn(names)

    def program(mesh):
        summation = TwoTreesSum(mesh, prg.fresh_key(), names, "x")
        projections, offsets = values[mesh.me]
        one = summation.sum(projections.copy(), "a")
        two = summation.phase_sum(projections + offsets, offsets, "b", "c")
        three = summation.sum(projections.copy(), "c")
        return one, two, three

    got = run(local_meshes(names, deadline=5.0), program).unwrap()
    total = ring_sum(projections for projections, _ in values.values())
    assert np.array_equal(got["a"][0], total)
    assert np.array_equal(got["b"][1], total + values["c"][1])
    assert np.array_equal(got["c"][2], total)


def test_two_parties_cannot_sum_over_two_trees():
    ends = local_meshes("ab", deadline=5.0)

    def program(mesh):
        return TwoTreesSum(mesh, prg.fresh_key(), ("a", "b"), "x").sum(np.ones(2, np.uint8), "a")

    errors = run(ends, program).errors
    assert set(errors) == {"a", "b"}
    for error in errors.values():
        assert isinstance(error, SecrecyError)
        assert "masking='pads'" in str(error)
    assert ends["a"].traffic.frames_sent == ends["b"].traffic.frames_sent == 0
