"""Sizes of the protocol of two parties, by formula: bytes that travel and are kept, and work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vertikal.secure.two_party.encrypted_product import tile_columns
from vertikal.secure.two_party.lattice.key_switching import DIGITS
from vertikal.secure.two_party.lattice.parameters import FEATURES, PRIME_BITS, PRODUCTS
from vertikal.secure.two_party.wire_words import wire_bytes
from vertikal.secure.two_party.word_lengths import (
    WordLengths,
    blocks_of,
    gathered_answers,
    kept_columns,
)

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
    def hidden(self) -> int:
        """Bytes that the helper sends back for them."""
        answers = -(-self._polynomials // gathered_answers(self._polynomials))
        return wire_bytes(answers * FEATURES.degree, WordLengths(self.rows).hidden)

    @property
    def keys(self) -> int:
        """Bytes of the label party's public keys, without the proof of them."""
        count = gathered_answers(self._polynomials)
        features = 1 if count == 1 else 1 + count + count * count * DIGITS
        return wire_bytes(
            features * len(FEATURES.primes) * FEATURES.degree
            + len(PRODUCTS.primes) * PRODUCTS.degree,
            PRIME_BITS,
        )

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
