"""Sums masked over two trees, as FDSKL publishes them (``masking="trees"``, for reproduction).

Each party adds a mask to its number, the masked numbers are summed over tree T1, the masks over a
totally different tree T2, and the receiver takes the second sum from the first.

For phases the paper draws the mask b^ℓ once per direction (it becomes the feature's offset b), so
the same mask hides every row: who receives a subtotal in T1 sees exact differences between two
people's subtotals. This is what was published, and it is kept here to be looked at; `pads` does not
share it. All other sums draw fresh masks.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.mesh.collectives import Tree, reduce
from vertikal.mesh.interface import Mesh
from vertikal.secure.keys.prg import encode_texts, uniform_elements
from vertikal.secure.sums.pads import group_name, summable
from vertikal.secure.sums.trees import masking_trees

Array = npt.NDArray[Any]


def kept_offset(parties: tuple[str, ...], to: str) -> str:
    """FDSKL Algorithm 3, line 6: whose offset stays; the same for all rows and runs."""
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
        """The sum of everybody's ``values`` at ``to``, by fresh masks; both trees span all."""
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
