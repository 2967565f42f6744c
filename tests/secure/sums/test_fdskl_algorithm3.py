"""FDSKL Algorithm 3, what travels in it, what it gives away, and which pairs of trees it takes."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.meshes import taped
from tests.conformance.running import run
from vertikal.errors import SecrecyError
from vertikal.mesh import local_meshes
from vertikal.mesh.collectives import SHAPES, cycle, edges, host, leaves, star, tree
from vertikal.secure.keys import prg
from vertikal.secure.sums.fdskl_algorithm3 import (
    TwoTreesSum,
    kept_offset,
    masking_trees,
    received,
    safe,
    shared_subtrees,
    subtrees,
    unmasked_sums,
)

NAMES = ("a", "b", "c", "d", "e", "f", "g")
LETTERS = "abcdefghijklmnop"
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

    got = run(local_meshes(names, deadline=60.0), program).unwrap()
    total = ring_sum(projections for projections, _ in values.values())
    assert np.array_equal(got["a"][0], total)
    assert np.array_equal(got["b"][1], total + values["c"][1])
    assert np.array_equal(got["c"][2], total)


def test_the_kept_offset_is_everybodys_choice_and_never_the_receivers():
    chosen = {kept_offset(NAMES[:count], to) for count in range(3, 8) for to in NAMES[:count]}
    assert len(chosen) > 2
    for to in NAMES:
        kept = kept_offset(NAMES, to)
        assert kept in NAMES
        assert kept != to
        assert kept == kept_offset(NAMES, to)


def test_two_parties_cannot_sum_over_two_trees():
    ends = local_meshes("ab", deadline=60.0)

    def program(mesh):
        return TwoTreesSum(mesh, prg.fresh_key(), ("a", "b"), "x").sum(np.ones(2, np.uint8), "a")

    errors = run(ends, program).errors
    assert set(errors) == {"a", "b"}
    for error in errors.values():
        assert isinstance(error, SecrecyError)
        assert "masking='pads'" in str(error)
    assert ends["a"].traffic.frames_sent == ends["b"].traffic.frames_sent == 0


def sets(*texts):
    return {frozenset(text) for text in texts}


def test_the_subtrees_of_figure_2():
    """FDSKL Figure 2 (a): workers 1 and 2, 3 and 4 are paired, then the two pairs."""
    assert set(subtrees((("1", "2"), ("3", "4")))) == sets("12", "34", "1234")
    assert set(subtrees("1")) == set()


def test_figure_2_pairs_a_tree_of_four_with_one_of_three():
    t1 = (("1", "2"), ("3", "4"))
    assert shared_subtrees(t1, (("1", "3"), "2")) == set()
    assert shared_subtrees(t1, ("1", ("2", "3"))) == set()
    assert shared_subtrees(t1, (("1", "2"), "3")) == sets("12")
    assert shared_subtrees(t1, (("2", "1"), "3")) == sets("12")


def test_subtrees_are_compared_by_their_leaves():
    assert shared_subtrees((("a", ("b", "c")), "d"), ((("c", "b"), "a"), "d")) == sets("abc", "bc")


def test_the_whole_of_the_parties_counts_only_for_two():
    assert shared_subtrees((("a", "b"), "c"), (("a", "c"), "b")) == set()
    assert shared_subtrees(("a", "b"), ("b", "a")) == sets("ab")
    # A whole that is only a part of the other tree is a subtotal there.
    assert shared_subtrees((("a", "b"), "c"), ("a", "b")) == sets("ab")


def test_a_tree_shares_all_with_itself():
    node = tree("abcdef")
    assert shared_subtrees(node, node) == set(subtrees(node)) - sets("abcdef")
    assert not safe(node, node)


def test_what_each_party_receives():
    node = (("a", "b"), ("c", "d"))
    assert set(received(node, "a")) == sets("b", "cd")
    assert set(received(node, "c")) == sets("d")
    assert set(received(node, "b")) == set(received(node, "d")) == set()
    assert set(received("a", "a")) == set()


@pytest.mark.parametrize("shape", list(SHAPES))
def test_as_many_subtotals_are_received_as_messages_are_sent(shape):
    node = SHAPES[shape](LETTERS[:7])
    for name in LETTERS[:7]:
        inbound = [sender for sender, receiver in edges(node) if receiver == name]
        assert len(list(received(node, name))) == len(inbound)


def test_totally_different_trees_can_show_a_part_all_the_same():
    """FDSKL Lemma 8 does not hold: c's masked number and c's mask both reach a."""
    t1, t2 = (("a", "b"), "c"), (("a", "c"), "b")
    assert shared_subtrees(t1, t2) == set()
    assert unmasked_sums(t1, t2, "a") == 2
    assert not safe(t1, t2)
    assert not safe((("a", "k"), "c"), ("a", "c"))


def test_combinations_of_subtotals_count_too():
    """No subtotal comes twice, yet a has v_c + v_d with both masks, and each of the masks."""
    t1, t2 = ((("a", "b"), ("c", "d")), "e"), ((("a", "c"), ("b", "e")), "d")
    assert shared_subtrees(t1, t2) == set()
    assert unmasked_sums(t1, t2, "a") == 2
    assert not safe(t1, t2)


def test_a_subtotal_and_its_masks_at_somebody_else_are_no_danger_to_anybody():
    t1, t2 = (("a", "b"), ("c", "d")), (("a", "c"), ("b", "d"))
    assert [unmasked_sums(t1, t2, name) for name in "abcd"] == [1, 0, 0, 0]
    assert safe(t1, t2)


def test_a_cycle_with_a_star_is_safe_for_any_number_of_parties():
    """If all numbers flow through one neighbour in T1, the receiver may see each mask in T2."""
    for count in range(3, 9):
        assert safe(cycle(LETTERS[:count]), star(LETTERS[:count]))


@pytest.mark.parametrize("count", range(3, 10))
def test_there_is_a_safe_pair_for_three_parties_and_more(count):
    parties = tuple(LETTERS[:count])
    first, second = masking_trees(parties)
    assert shared_subtrees(first, second) == set()
    assert host(first) == host(second) == "a"
    assert sorted(leaves(first)) == sorted(leaves(second)) == list(parties)
    assert [unmasked_sums(first, second, name) for name in parties] == [1] + [0] * (count - 1)


@pytest.mark.parametrize("count", range(2, 8))
def test_there_is_a_safe_pair_without_the_kept_party(count):
    """FDSKL Algorithm 3, line 7: T2 is over all but one party."""
    parties = tuple(LETTERS[:count])
    for kept in parties[1:]:
        first, second = masking_trees(parties, kept)
        rest = [name for name in parties if name != kept]
        assert shared_subtrees(first, second) == set()
        assert host(first) == host(second) == "a"
        assert (sorted(leaves(first)), sorted(leaves(second))) == (list(parties), rest)
        assert not any(unmasked_sums(first, second, name) for name in parties)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("without", [None, "b", "p"])
def test_trees_for_many_parties_are_found_at_once(without):
    first, second = masking_trees(tuple(LETTERS), without)
    assert safe(first, second)


@given(
    st.permutations(LETTERS[:4]),
    st.permutations(LETTERS[:4]),
    st.sampled_from(sorted(SHAPES)),
    st.sampled_from(sorted(SHAPES)),
)
def test_safe_means_that_no_combination_of_subtotals_is_free_of_masks(one, other, form, again):
    """The slow twin of `unmasked_sums`: all combinations with small factors, by hand."""
    first, second = SHAPES[form](one), SHAPES[again](["a", *(n for n in other if n != "a")])
    for party in LETTERS[:4]:
        masked, masks = list(received(first, party)), list(received(second, party))
        names = [name for name in LETTERS[:4] if name != party]

        def vector(groups, factors, names=names):
            pairs = list(zip(groups, factors, strict=True))
            return tuple(sum(f for g, f in pairs if name in g) for name in names)

        bare = {vector(masked, f) for f in product((-1, 0, 1), repeat=len(masked))}
        cover = {vector(masks, f) for f in product((-1, 0, 1), repeat=len(masks))}
        found = (bare & cover) - {(0,) * len(names)}
        assert bool(found) == bool(unmasked_sums(first, second, party))


@pytest.mark.parametrize("parties", [("a", "b"), ("b", "a")])
def test_two_parties_are_refused_with_a_remedy(parties):
    with pytest.raises(SecrecyError, match="Definition 2") as caught:
        masking_trees(parties)
    text = str(caught.value)
    assert str(list(parties)) in text
    assert "use masking='pads', or at least three parties" in text


def test_one_party_needs_no_mask():
    assert masking_trees(("a",)) == ("a", "a")
