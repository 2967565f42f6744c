"""Pairs of trees for masking, and the checks that they are fit for it.

FDSKL Definition 2: two trees are totally different if no subtree with more than one leaf belongs to
both. That is not enough: with T1 = ((a, k), c) and T2 = (a, c), which are totally different, c
sends its masked number and later its mask to the same party. So a second check is made: whatever a
party receives in both trees, no combination of it is free of masks, except the sum that is its due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np

from vertikal.errors import SecrecyError
from vertikal.mesh.collectives import Tree, cycle, host, leaves, tree

_FEW = 4


def subtrees(node: Tree) -> Iterator[frozenset[str]]:
    """The leaf sets of all subtrees with more than one leaf, the whole tree included."""
    if not isinstance(node, str):
        yield frozenset(leaves(node))
        for child in node:
            yield from subtrees(child)


def shared_subtrees(first: Tree, second: Tree) -> set[frozenset[str]]:
    """FDSKL Definition 2: what two trees have in common; empty if they are totally different.

    Subtrees are compared by their leaves, whatever their inner form. The whole of the parties does
    not count where both trees span all of them: its sum is what the receiver is meant to have.
    """
    common = set(subtrees(first)) & set(subtrees(second))
    whole = frozenset(leaves(first))
    if whole == frozenset(leaves(second)) and len(whole) > 2:
        common.discard(whole)
    return common


def received(node: Tree, party: str) -> Iterator[frozenset[str]]:
    """The leaf sets whose subtotals ``party`` receives when a sum is taken over this tree."""
    if not isinstance(node, str):
        left, right = node
        if host(left) == party:
            yield frozenset(leaves(right))
        yield from received(left, party)
        yield from received(right, party)


def unmasked_sums(first: Tree, second: Tree, party: str) -> int:
    """How many independent sums of others' numbers ``party`` can free of their masks.

    Each subtotal in the first tree carries the masks of its leaves; each in the second is a sum of
    masks. The party knows its own. What both kinds of subtotals span in common can be unmasked.
    """
    others = [name for name in leaves(first) if name != party]

    def rank(groups: list[frozenset[str]]) -> int:
        rows = [[float(name in group) for name in others] for group in groups]
        return int(np.linalg.matrix_rank(np.array(rows))) if rows and others else 0

    masked, masks = list(received(first, party)), list(received(second, party))
    return rank(masked) + rank(masks) - rank(masked + masks)


def safe(first: Tree, second: Tree) -> bool:
    """Totally different, and nobody can unmask more than the receiver's own total.

    FDSKL Lemma 8 claims the second of the first; it does not follow, so both are checked.
    The total is free of masks only where the second tree spans all parties of the first.
    """
    if shared_subtrees(first, second):
        return False
    due = 1 if set(leaves(first)) == set(leaves(second)) else 0
    return all(
        unmasked_sums(first, second, party) <= (due if party == host(first) else 0)
        for party in leaves(first)
    )


def masking_trees(parties: Sequence[str], without: str | None = None) -> tuple[Tree, Tree]:
    """A tree T1 over ``parties`` and a T2, both rooted at the first party, that are safe together.

    ``without`` names a party that takes no part in T2. Refuses where there is no such pair, as for
    two parties that take part in both.
    """
    root, *others = parties
    for shape, order in product((tree, cycle), _orders(others)):
        first = shape((root, *order))
        rest = [name for name in order if name != without]
        for form, again in product((tree, cycle), _orders(rest)):
            second = form((root, *again))
            if safe(first, second):
                return first, second
    raise SecrecyError(
        f"masking='trees': no two trees over {list(parties)} are totally different (FDSKL "
        "Definition 2) and hide every part; use masking='pads', or at least three parties"
    )


def _orders(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Some orders of the names, as unlike each other as a few can be; all of them while few."""
    if len(names) <= _FEW:
        return list(permutations(names))
    turned = [(*names[i:], *names[:i]) for i in range(len(names))]
    spread = [tuple(names[i::2]) + tuple(names[1 - i :: 2]) for i in (0, 1)]
    return [*spread, *turned, tuple(reversed(names))]
