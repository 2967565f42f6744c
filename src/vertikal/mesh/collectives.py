"""Collectives: sums towards one party and messages away from it, along a tree of parties.

A tree is a party's name, or a pair of trees. Each tree has a host, its leftmost party; at a pair
the right host sends its subtotal to the left host. All of the papers' communication structures are
such trees, and a reverse-order tree is the same one walked from the root to the leaves:

    tree   (("a", "b"), ("c", "d"))    b → a and d → c at the same time, then c → a
    star   ((("a", "b"), "c"), "d")    everybody → a
    cycle  ("a", ("b", ("c", "d")))    d → c → b → a
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from vertikal.errors import InputError
from vertikal.mesh.interface import Array, Mesh, Payload

Tree: TypeAlias = "str | tuple[Tree, Tree]"


def tree(parties: Sequence[str]) -> Tree:
    """FDSKL Figure 2: neighbours are paired until one is left; the first party is the root."""
    level: list[Tree] = list(_not_empty(parties))
    while len(level) > 1:
        pairs: list[Tree] = [(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def star(parties: Sequence[str]) -> Tree:
    """Everybody sends to the first party."""
    first, *others = _not_empty(parties)
    root: Tree = first
    for name in others:
        root = (root, name)
    return root


def cycle(parties: Sequence[str]) -> Tree:
    """Each party adds its part and hands the subtotal to the one before it."""
    *others, last = _not_empty(parties)
    root: Tree = last
    for name in reversed(others):
        root = (name, root)
    return root


SHAPES: dict[str, Callable[[Sequence[str]], Tree]] = {"tree": tree, "star": star, "cycle": cycle}


def host(node: Tree) -> str:
    """The party where the subtotal of this tree comes to lie."""
    while not isinstance(node, str):
        node = node[0]
    return node


def leaves(node: Tree) -> tuple[str, ...]:
    """The parties of this tree, from left to right."""
    return (node,) if isinstance(node, str) else leaves(node[0]) + leaves(node[1])


def edges(node: Tree) -> list[tuple[str, str]]:
    """(sender, receiver) of each message of a sum, in an order in which they can happen."""
    if isinstance(node, str):
        return []
    left, right = node
    return [*edges(left), *edges(right), (host(right), host(left))]


def reduce(mesh: Mesh, value: Array, node: Tree, tag: str) -> Array | None:
    """Sum everybody's ``value`` at the tree's host; None elsewhere.

    Unsigned integers wrap, which makes this a sum in the ring. ``value`` is used as the
    accumulator, if it can be written to.
    """
    for sender, receiver in edges(node):
        if receiver == mesh.me:
            part = mesh.recv_array(sender, tag, value.dtype, value.shape)
            value = np.add(value, part, out=value if value.flags.writeable else None)
        elif sender == mesh.me:
            mesh.send(receiver, tag, value)
    return value if host(node) == mesh.me else None


def broadcast(mesh: Mesh, payload: Payload | None, node: Tree, tag: str) -> Payload:
    """Tell every party of the tree what its host holds, in reverse tree order."""
    for child, parent in reversed(edges(node)):
        if child == mesh.me:
            payload = mesh.recv(parent, tag)
        elif parent == mesh.me and payload is not None:
            mesh.send(child, tag, payload)
    if payload is None:
        raise InputError.of("payload", f"given at {host(node)}, where the broadcast starts", None)
    return payload


def _not_empty(parties: Sequence[str]) -> Sequence[str]:
    if not parties:
        raise InputError.of("parties", "at least one name", list(parties))
    return parties
