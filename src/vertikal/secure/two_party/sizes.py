"""Sizes of the protocol of two parties, by formula: bytes that travel and are kept, and work."""

from __future__ import annotations

from dataclasses import dataclass

from vertikal.secure.two_party.encrypted_product import tile_columns
from vertikal.secure.two_party.parameters import FEATURES, PRODUCTS, kept_columns
from vertikal.secure.two_party.polynomials import WIRE_BYTES

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
        return self._polynomials * FEATURES.degree * len(FEATURES.primes) * WIRE_BYTES

    @property
    def masked(self) -> int:
        """Bytes that the helper sends back for them."""
        return self.encrypted + self.kept_by_label_party

    @property
    def kept_by_label_party(self) -> int:
        return self.rows * self._columns * _WORD

    @property
    def kept_by_helper(self) -> int:
        across, down = self._tiles
        return across * down * PRODUCTS.degree * len(PRODUCTS.primes) * _WORD

    @property
    def asked(self) -> int:
        """Bytes of a forward and an adjoint question of one vector each."""
        return sum(self._tiles) * PRODUCTS.degree * len(PRODUCTS.primes) * WIRE_BYTES

    @property
    def answered(self) -> int:
        """Bytes of their answers."""
        words = (self.rows + self._columns) * _WORD
        return sum(self._tiles) * PRODUCTS.degree * WIRE_BYTES + words

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
        return self.rows * -(-self.width // (FEATURES.degree // 2))

    @property
    def _tiles(self) -> tuple[int, int]:
        """Tiles across and down."""
        k = tile_columns(self.rows, self._columns, PRODUCTS.degree)
        return self._columns // k, -(-self.rows // (PRODUCTS.degree // k))
