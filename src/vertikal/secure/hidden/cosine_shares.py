"""Hidden phases, steps 1 and 2 together: from everybody's phases to two shares of their cosines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.mesh.interface import Mesh
from vertikal.secure.hidden.fixed_point import FixedPointProducts
from vertikal.secure.hidden.phase_shares import PhaseShares
from vertikal.secure.hidden.row_block import RowBlock
from vertikal.secure.hidden.trigonometric import TrigonometricShares
from vertikal.secure.keys.agreement import PairKeys

Array: TypeAlias = npt.NDArray[Any]
Booked: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Opens the ledger's entry for one kind of message."""

PHASE_BITS = (8, 16)
"""Widths for which a table of all cosines is small."""


class CosineShares:
    """One party's part in one block of rows; with ``pairs`` the shares are of cosines and sines."""

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        block: RowBlock,
        phase_bits: int,
        fixed: FixedPointProducts,
        booked: Booked,
        *,
        pairs: bool = False,
    ) -> None:
        if phase_bits not in PHASE_BITS:
            raise InputError.of("phase_bits", "8 or 16", phase_bits)
        self._me, self._roles, self._booked = mesh.me, block.roles, booked
        self._shares = PhaseShares(mesh, keys, block.roles)
        if block.dealing is not None:
            self._cosines = TrigonometricShares(
                mesh, keys, block.roles, block.dealing, phase_bits, fixed, pairs=pairs
            )

    def add(self, phases: Array) -> Array | None:
        """Every party: the rows, with its own phases (rows, D), which are overwritten.

        A and H get their shares of the cosines, with ``pairs`` followed by those of the sines;
        everybody else None.
        """
        if self._me == self._roles.dealer:
            with self._booked("correlation"):
                self._cosines.deal(phases)
            return None
        with self._booked("shares"):
            share = self._shares.share(phases)
        if share is None:
            return None
        with self._booked("opening"):
            if self._me == self._roles.label_party:
                return self._cosines.open_as_label_party(share)
            return self._cosines.open_as_helper(share)
