"""FDSKL Definition 2, and what a pair of trees must do beyond it."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.errors import SecrecyError
from vertikal.mesh.collectives import SHAPES, cycle, edges, host, leaves, star, tree
from vertikal.secure.sums.trees import (
    masking_trees,
    received,
    safe,
    shared_subtrees,
    subtrees,
    unmasked_sums,
)

NAMES = "abcdefghijklmnop"


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
    node = SHAPES[shape](NAMES[:7])
    for name in NAMES[:7]:
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
    """Where all flow through one neighbour in T1, the receiver may even see each mask in T2."""
    for count in range(3, 9):
        assert safe(cycle(NAMES[:count]), star(NAMES[:count]))


@pytest.mark.parametrize("count", range(3, 10))
def test_there_is_a_safe_pair_for_three_parties_and_more(count):
    parties = tuple(NAMES[:count])
    first, second = masking_trees(parties)
    assert shared_subtrees(first, second) == set()
    assert host(first) == host(second) == "a"
    assert sorted(leaves(first)) == sorted(leaves(second)) == list(parties)
    assert [unmasked_sums(first, second, name) for name in parties] == [1] + [0] * (count - 1)


@pytest.mark.parametrize("count", range(2, 8))
def test_there_is_a_safe_pair_without_the_kept_party(count):
    """FDSKL Algorithm 3, line 7: T2 is over all but one party."""
    parties = tuple(NAMES[:count])
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
    first, second = masking_trees(tuple(NAMES), without)
    assert safe(first, second)


@given(
    st.permutations(NAMES[:4]),
    st.permutations(NAMES[:4]),
    st.sampled_from(sorted(SHAPES)),
    st.sampled_from(sorted(SHAPES)),
)
def test_safe_means_that_no_combination_of_subtotals_is_free_of_masks(one, other, form, again):
    """The slow twin of `unmasked_sums`: all combinations with small factors, by hand."""
    first, second = SHAPES[form](one), SHAPES[again](["a", *(n for n in other if n != "a")])
    for party in NAMES[:4]:
        masked, masks = list(received(first, party)), list(received(second, party))
        names = [name for name in NAMES[:4] if name != party]

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
