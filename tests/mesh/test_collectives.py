"""The trees themselves, by hand; sums along them are in the conformance suite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.errors import InputError
from vertikal.mesh.collectives import SHAPES, cycle, edges, host, leaves, star, tree


def test_the_shapes_of_the_docstring():
    assert tree("abcd") == (("a", "b"), ("c", "d"))
    assert star("abcd") == ((("a", "b"), "c"), "d")
    assert cycle("abcd") == ("a", ("b", ("c", "d")))


def test_the_messages_of_the_docstring():
    assert edges(tree("abcd")) == [("b", "a"), ("d", "c"), ("c", "a")]
    assert edges(star("abcd")) == [("b", "a"), ("c", "a"), ("d", "a")]
    assert edges(cycle("abcd")) == [("d", "c"), ("c", "b"), ("b", "a")]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a", "a"),
        ("ab", ("a", "b")),
        ("abc", (("a", "b"), "c")),
        ("abcde", ((("a", "b"), ("c", "d")), "e")),
        ("abcdefg", ((("a", "b"), ("c", "d")), (("e", "f"), "g"))),
    ],
)
def test_trees_of_other_sizes(names, expected):
    assert tree(names) == expected


def depth(node):
    return 0 if isinstance(node, str) else 1 + max(map(depth, node))


@pytest.mark.parametrize("count", range(1, 20))
def test_a_tree_is_as_deep_as_a_binary_tree_must_be(count):
    names = [f"p{i}" for i in range(count)]
    assert depth(tree(names)) == (count - 1).bit_length()
    assert depth(star(names)) == depth(cycle(names)) == count - 1


@pytest.mark.parametrize("shape", list(SHAPES))
@given(st.lists(st.text("abcdefgh", min_size=1), min_size=1, max_size=12, unique=True))
def test_every_shape_has_the_first_as_host_and_each_other_party_sends_once(shape, names):
    node = SHAPES[shape](names)
    assert host(node) == names[0]
    assert sorted(leaves(node)) == sorted(names)
    assert sorted(sender for sender, _ in edges(node)) == sorted(names[1:])
    # An order in which it can happen: who has sent its subtotal receives nothing more.
    gone = set()
    for sender, receiver in edges(node):
        assert receiver not in gone
        gone.add(sender)


@pytest.mark.parametrize("shape", list(SHAPES))
def test_no_parties_make_no_tree(shape):
    with pytest.raises(InputError, match="parties must be at least one name"):
        SHAPES[shape]([])
