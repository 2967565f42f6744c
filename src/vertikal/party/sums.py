"""The secure sums of one party: masked as the job says, and booked in the ledger as they travel."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeAlias

import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.mesh.collectives import SHAPES
from vertikal.party.booking import BookedMesh
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.prg import fresh_key
from vertikal.secure.sums.fdskl_algorithm3 import TwoTreesSum, kept_offset
from vertikal.secure.sums.open_sum import OpenSum
from vertikal.secure.sums.pads import PaddedSum, PendingSum

Array: TypeAlias = npt.NDArray[Any]
SecureSum: TypeAlias = PaddedSum | TwoTreesSum | OpenSum

MASKINGS = ("pads", "trees")
"""Ways to mask secure sums; ``None`` sends them in the clear, as some papers do."""


def check_masking(masking: str | None, shape: str) -> None:
    """Refuse a masking or a shape of trees that does not exist."""
    if masking is not None and masking not in MASKINGS:
        raise InputError.of("masking", f"one of {MASKINGS}", masking)
    if shape not in SHAPES:
        raise InputError.of("shape", f"one of {list(SHAPES)}", shape)


class SecureSums:
    """All sums of one run: one sequence of pads or masks for each group and purpose."""

    def __init__(self, mesh: BookedMesh, keys: PairKeys, masking: str | None, shape: str) -> None:
        self._mesh = mesh
        self._keys = keys
        self._masking = masking
        self._shape = shape
        self._sums: dict[tuple[tuple[str, ...], str], SecureSum] = {}
        self._renewed: dict[str, int] = {}

    @property
    def sent_to_their_receiver(self) -> bool:
        """True if every summand goes to the receiver of the sum itself, under pads."""
        return self._masking == "pads" and self._shape == "star"

    def renew(self, disclosure: Disclosure) -> None:
        """Take the pads of later sums of this kind from other keys; all parties do so in step."""
        self._renewed[disclosure.name] = self._renewed.get(disclosure.name, 0) + 1

    def sum(
        self, values: Array, to: str, disclosure: Disclosure, group: tuple[str, ...]
    ) -> Array | None:
        """Sum everybody's ring elements at ``to``; None at the others."""
        with self._mesh.under(self._as_sent(disclosure)):
            return self._of(group, disclosure.name).sum(values, to)

    def phase_sum(
        self, phases: Array, offsets: Array, to: str, disclosure: Disclosure
    ) -> Array | None:
        """Sum everybody's phases at ``to``; with trees, take the offsets out again but one."""
        parties = self._mesh.parties
        summation = self._of(parties, disclosure.name)
        with self._mesh.under(self._as_sent(disclosure)):
            if isinstance(summation, TwoTreesSum):
                return summation.phase_sum(phases, offsets, to, kept_offset(parties, to))
            return summation.sum(phases, to)

    def begin(self, disclosure: Disclosure, group: tuple[str, ...]) -> PendingSum | None:
        """Take the pads of the next sum, before its elements are there; None without pads."""
        summation = self._of(group, disclosure.name)
        return summation.begin() if isinstance(summation, PaddedSum) else None

    def finish(
        self,
        pending: PendingSum,
        masked: Array,
        to: str,
        disclosure: Disclosure,
        group: tuple[str, ...],
        apart: Collection[str] = (),
    ) -> Array | None:
        """Sum everybody's elements at ``to``, of which this party's are masked already.

        They contain those of the parties ``apart``.
        """
        summation = self._of(group, disclosure.name)
        assert isinstance(summation, PaddedSum)
        with self._mesh.under(self._as_sent(disclosure)):
            return summation.finish(pending, masked, to, apart)

    def _as_sent(self, disclosure: Disclosure) -> Disclosure:
        """Book a sum as open if it has no masks: its receiver sees every summand."""
        if self._masking is not None:
            return disclosure
        learns = f"not masked, each party's own numbers are read: {disclosure.learns}"
        return replace(disclosure, learns=learns, masked=False)

    def _of(self, group: tuple[str, ...], purpose: str) -> SecureSum:
        if purpose in self._renewed:
            purpose = f"{purpose}, renewed {self._renewed[purpose]}"
        key = (group, purpose)
        if key not in self._sums:
            if self._masking is None:
                self._sums[key] = OpenSum(self._mesh, group, purpose)
            elif self._masking == "pads":
                self._sums[key] = PaddedSum(self._mesh, self._keys, group, purpose, self._shape)
            else:
                self._sums[key] = TwoTreesSum(self._mesh, fresh_key(), group, purpose)
        return self._sums[key]
