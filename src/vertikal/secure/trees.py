"""Pairs of trees for masking, and the check that they are fit for it.

FDSKL Definition 2: two trees are totally different if no subtree with more than one leaf belongs to
both. A party that sees the masked subtotal of a subtree in one tree and the sum of the same masks
in the other could take the masks off; this is what the definition rules out, so subtrees are
compared by their leaves, whatever their inner form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations

from vertikal.errors import SecrecyError
from vertikal.mesh.collectives import Tree, leaves, tree

_TRIES = 5000


def subtrees(node: Tree) -> Iterator[frozenset[str]]:
    """The leaf sets of all subtrees with more than one leaf, the whole tree included."""
    if not isinstance(node, str):
        yield frozenset(leaves(node))
        for child in node:
            yield from subtrees(child)


def shared_subtrees(first: Tree, second: Tree) -> set[frozenset[str]]:
    """FDSKL Definition 2: what two trees have in common; empty if they are totally different.

    The whole of the parties does not count where both trees span all of them: its sum is what
    the receiver is meant to have, and nobody else sees it.
    """
    common = set(subtrees(first)) & set(subtrees(second))
    whole = frozenset(leaves(first))
    if whole == frozenset(leaves(second)) and len(whole) > 2:
        common.discard(whole)
    return common


def totally_different(first: Tree, parties: Sequence[str]) -> Tree:
    """A tree over ``parties``, rooted at the first of them, totally different from ``first``.

    Refuses where there is none, as for two parties that both take part in both trees.
    """
    root, *others = parties
    for order in islice(permutations(others), _TRIES):
        candidate = tree((root, *order))
        if not shared_subtrees(first, candidate):
            return candidate
    raise SecrecyError(
        f"masking='trees': no tree over {list(parties)} is totally different from {first} "
        "(FDSKL Definition 2); use masking='pads', or at least three parties"
    )
