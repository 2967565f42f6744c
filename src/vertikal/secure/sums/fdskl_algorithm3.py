"""FDSKL Algorithm 3: sums masked over two trees (``masking="trees"``, for reproduction).

Each party adds a mask to its number, the masked numbers are summed over tree T1, the masks over a
totally different tree T2, and the receiver takes the second sum from the first.

For phases the paper draws the mask b^ℓ once per direction (it becomes the feature's offset b), so
the same mask hides every row: the receiver of a subtotal in T1 sees exact differences between two
people's subtotals. The published algorithm is kept here as it is; `pads` does not have this flaw.
All other sums draw fresh masks.

FDSKL Definition 2: two trees are totally different if no subtree with more than one leaf belongs to
both. That is not enough: with T1 = ((a, k), c) and T2 = (a, c), which are totally different, c
sends its masked number and later its mask to the same party. So a second check is made: whatever a
party receives in both trees, no combination of it is free of masks, except the sum that is its due.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import SecrecyError
from vertikal.mesh.collectives import Tree, cycle, host, leaves, reduce, tree
from vertikal.mesh.interface import Mesh
from vertikal.secure.keys.prg import encode_texts, uniform_elements
from vertikal.secure.sums.pads import group_name, summable

Array = npt.NDArray[Any]

_FEW = 4


def kept_offset(parties: tuple[str, ...], to: str) -> str:
    """FDSKL Algorithm 3, line 6: choose the party whose offset stays, for all rows and runs."""
    others = [name for name in parties if name != to]
    coin = hashlib.sha256(encode_texts("kept", to, *parties)).digest()
    return others[int.from_bytes(coin[:8], "big") % len(others)]


class TwoTreesSum:
    """Sums masked over two trees, among a fixed group of parties for one purpose.

    ``key`` is this party's own, fresh in every run: its masks are drawn from it.
    """

    def __init__(self, mesh: Mesh, key: bytes, group: tuple[str, ...], purpose: str) -> None:
        self._mesh = mesh
        self._key = key
        self._group = group
        self._purpose = purpose
        self._rounds = 0
        self._trees: dict[tuple[str, str | None], tuple[Tree, Tree]] = {}

    def sum(self, values: Array, to: str) -> Array | None:
        """Sum everybody's ``values`` at ``to`` under fresh masks; both trees span all parties."""
        values = summable(values, to, self._group)
        first, second = self._pair(to, None)
        masks = uniform_elements(self._key, values.shape, values.dtype, stream=self._rounds)
        values += masks
        tag = self._tag()
        masked = reduce(self._mesh, values, first, f"{tag}/t1")
        total = reduce(self._mesh, masks, second, f"{tag}/t2")
        return None if masked is None or total is None else masked - total

    def phase_sum(self, phases: Array, offsets: Array, to: str, kept: str) -> Array | None:
        """FDSKL Algorithm 3: Σ_ℓ (ω_ℓᵀx_ℓ + b^ℓ) − Σ_{ℓ≠ℓ'} b^ℓ at the label party ``to``.

        Also VFKL Algorithm 3; that it equals ωᵀx + b is FDSKL Lemma 1. ``phases`` (rows, D) are
        this party's projections with ``offsets`` (D,), its b^ℓ, already in them (lines 1 to 4);
        ``kept`` is ℓ' of line 6, whose b^ℓ' stays in as the features' offset b.
        """
        phases = summable(phases, to, self._group)
        first, second = self._pair(to, kept)
        tag = self._tag()
        masked = reduce(self._mesh, phases, first, f"{tag}/t1")  # line 5: ξ
        removed = None
        if self._mesh.me != kept:
            masks = np.array(offsets)
            removed = reduce(self._mesh, masks, second, f"{tag}/t2")  # line 7
        return None if masked is None or removed is None else masked - removed

    def _pair(self, to: str, kept: str | None) -> tuple[Tree, Tree]:
        if (to, kept) not in self._trees:
            order = (to, *(name for name in self._group if name != to))
            self._trees[to, kept] = masking_trees(order, kept)
        return self._trees[to, kept]

    def _tag(self) -> str:
        number, self._rounds = self._rounds, self._rounds + 1
        return f"sum/{self._purpose}/{group_name(self._group)}/{number}"


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
    """Count the independent sums of others' numbers that ``party`` can free of their masks.

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
    """Choose a few orders of the names that are very unlike; all orders of few names."""
    if len(names) <= _FEW:
        return list(permutations(names))
    turned = [(*names[i:], *names[:i]) for i in range(len(names))]
    spread = [tuple(names[i::2]) + tuple(names[1 - i :: 2]) for i in (0, 1)]
    return [*spread, *turned, tuple(reversed(names))]
