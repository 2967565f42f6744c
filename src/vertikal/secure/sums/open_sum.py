"""Sums without masks (``masking=None``): for reproducing papers that send their numbers in clear.

Same interface as `pads.PaddedSum`; every summand travels as it is, and whoever receives it reads
it. The ledger books such sums as open.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from vertikal.mesh.collectives import SHAPES, reduce
from vertikal.mesh.interface import Mesh
from vertikal.secure.sums.pads import group_name, summable

Array = npt.NDArray[Any]


class OpenSum:
    """Plain sums in the ring among a fixed group of parties, everybody straight to the receiver."""

    def __init__(self, mesh: Mesh, group: tuple[str, ...], purpose: str) -> None:
        self._mesh = mesh
        self._group = group
        self._purpose = purpose
        self._rounds = 0

    def sum(self, values: Array, to: str) -> Array | None:
        """Sum everybody's ``values`` (ring elements) at party ``to``; None at the others."""
        values = summable(values, to, self._group)
        tag = f"open/{self._purpose}/{group_name(self._group)}/{self._rounds}"
        self._rounds += 1
        order = (to, *(name for name in self._group if name != to))
        return reduce(self._mesh, values, SHAPES["star"](order), tag)
