"""Secure sums over the label parties: numbers of rows, and a few scalars."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring
from vertikal.solvers.lbfgs import Sums

Array = npt.NDArray[Any]

PARTIAL = Disclosure(
    "partial predictions",
    "partial predictions of the label parties, summed",
    "label parties learn predictions on the rows at hand; with two of them, each the other's part",
    masked=True,
)
PRODUCTS = Disclosure(
    "inner products",
    "inner products of the label parties' coefficients, summed",
    "label parties learn lengths and angles of whole coefficient vectors; with two of them, each "
    "those of the other's part",
    masked=True,
)
_FRACTION = 36


class LabelSums(Sums):
    """Secure sums over the label parties in ``group``; with one of them, nothing travels.

    ``of_rows`` and ``of_scalars`` say what is summed, by default partial predictions and inner
    products.
    """

    def __init__(
        self,
        party: Party,
        group: tuple[str, ...],
        of_rows: Disclosure = PARTIAL,
        of_scalars: Disclosure = PRODUCTS,
    ) -> None:
        self._party = party
        self._group = group
        self._of_rows, self._of_scalars = of_rows, of_scalars
        self._ring = Ring(64)

    def rows(self, partial: Array) -> Array:
        if len(self._group) == 1:
            return partial
        total = self._party.sum_to_group(self._encode(partial), self._group, self._of_rows)
        return self._ring.decode_reals(total, _FRACTION)

    def scalars(self, partial: Array) -> Array:
        if len(self._group) == 1:
            return partial
        encoded = self._ring.encode_wide(partial, len(self._group))
        total = self._party.sum_to_group(encoded, self._group, self._of_scalars)
        return self._ring.decode_wide(total)

    def to(self, receiver: str, partial: Array) -> Array | None:
        """Sum numbers of rows at one label party; the others get None."""
        if len(self._group) == 1:
            return partial
        total = self._party.secure_sum(self._encode(partial), receiver, self._of_rows, self._group)
        return None if total is None else self._ring.decode_reals(total, _FRACTION)

    def _encode(self, partial: Array) -> Array:
        return self._ring.encode_reals(partial, _FRACTION, len(self._group))
