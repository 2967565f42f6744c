"""Sizes of the protocol of two parties, by formula: bytes that travel and are kept, and work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vertikal.secure.two_party.encrypted_product import tile_columns
from vertikal.secure.two_party.parameters import (
    FEATURES,
    PRODUCTS,
    WordLengths,
    blocks_of,
    kept_columns,
)
from vertikal.secure.two_party.wire_words import wire_bytes

_WORD = 4
_STEP = 24
"""Multiplications that one entry of a polynomial costs on its way through the encryption, about:
transforms, random numbers and their rounding."""


@dataclass(frozen=True)
class TwoPartySizes:
    """Sizes for one block of features."""

    rows: int
    width: int
    pairs: bool = False

    @property
    def encrypted(self) -> int:
        """Bytes of the encrypted cosines, which the label party sends."""
        bits = WordLengths(self.rows).encrypted
        return wire_bytes(self._polynomials * FEATURES.degree, bits)

    @property
    def masked(self) -> int:
        """Bytes that the helper sends back for them."""
        lengths = WordLengths(self.rows)
        hidden = wire_bytes(self._polynomials * FEATURES.degree, lengths.hidden)
        return hidden + wire_bytes(self.rows * self._columns, lengths.shared)

    @property
    def kept_by_label_party(self) -> int:
        return self.rows * self._columns * _WORD

    @property
    def kept_by_helper(self) -> int:
        across, down = self._tiles
        return across * down * PRODUCTS.degree * len(PRODUCTS.primes) * _WORD

    def asked(self, opened: Mapping[str, int]) -> int:
        """Bytes of a forward and an adjoint question of one vector each, ``opened`` to its bits."""
        lengths = WordLengths(self.rows)
        return sum(
            wire_bytes(tiles * PRODUCTS.degree, lengths.asked(opened[kind], tiles))
            for kind, tiles in zip(("forward", "adjoint"), self._tiles, strict=True)
        )

    def answered(self, opened: Mapping[str, int]) -> int:
        """Bytes of their answers."""
        across, down = self._tiles
        total = 0
        for kind, tiles, length in (
            ("forward", down, self.rows),
            ("adjoint", across, self._columns),
        ):
            bits = WordLengths(self.rows).answered(opened[kind])
            total += wire_bytes(length, bits) + wire_bytes(tiles * PRODUCTS.degree, bits)
        return total

    def multiplications(self, products: int) -> float:
        """Multiplications of the helper, to add all rows and answer so many products."""
        once = self._polynomials * FEATURES.degree * len(FEATURES.primes) * _STEP
        across, down = self._tiles
        return once + products * 2.0 * across * down * PRODUCTS.degree * len(PRODUCTS.primes)

    @property
    def _columns(self) -> int:
        return kept_columns(self.width, pairs=self.pairs)

    @property
    def _polynomials(self) -> int:
        return self.rows * blocks_of(self.width)

    @property
    def _tiles(self) -> tuple[int, int]:
        """Tiles across and down."""
        k = tile_columns(self.rows, self._columns, PRODUCTS.degree)
        return self._columns // k, -(-self.rows // (PRODUCTS.degree // k))
