"""Lengths of the words of which shares, questions and answers consist, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass

from vertikal.secure.two_party.lattice.parameters import FEATURES

FRACTION_BITS = 11
"""Fraction bits of a shared feature, and those of the helper's polynomials."""


@dataclass(frozen=True)
class WordLengths:
    """Bits of all words for ``rows`` rows, as few as the result can do with.

    A feature is shared in words of 11 fraction bits and as many more as sums take, its *room*. A
    gradient's sum over n rows is off by √n·0.29/32 units of the vector where entries are rounded,
    and full scale is 2^(room − 1): with a room of 9 + ½·log2 n that is 2^-14.8 of full scale or
    less, about what the noise on 14 bits is.

    A feature is off, by deviation and in percent, at N = 2,048,

        0.45   the helper's polynomial, rounded at 11 fraction bits     0.29·√(N/2)/2^11
        0.45   c0 of the label party at 22 bits beyond the room         0.29·√(N/2)/2^11
        0.26   c1 of the helper at 17 bits beyond the room, times s     0.29·√(2N/3)·√(N/2)/2^17
        0.32   words of 11 fraction bits                                0.29·√(N/4)/2^11
        0.02   errors of the encryption, for a room of 17               3.24·√(N/2)·2^(room + 11)/q
        0.02   those of a switching key, for a room of 17               7,800·√(N/2)·2^room/q

    which is 0.8 together. Where sines are shared too, the last but one is 0.45. Phases of 8 bits
    alone make 0.5.

    Of a product b bits are opened, under noise of 2^-b of all words. A question rounded to
    b + bits + 8 + ½·log2 t bits, t the tiles that are added up, and c1 of the answer rounded to
    b + 8, each move it by about 2^-(b + 4) of all words, a fifth of the noise's deviation.
    """

    rows: int

    @property
    def room(self) -> int:
        """Bits of a shared word beyond those of its fraction."""
        return min(20, max(14, 9 + (max(1, self.rows - 1).bit_length() + 1) // 2))

    @property
    def shared(self) -> int:
        """Bits of a shared word; they are the upper ones of 32."""
        return FRACTION_BITS + self.room

    @property
    def unit(self) -> int:
        """Bits of 32 below those of a shared word."""
        return 32 - self.shared

    @property
    def matrix_bits(self) -> int:
        """Fraction bits of a shared word, if it is read as one of 32 bits."""
        return 32 - self.room

    @property
    def encrypted(self) -> int:
        """Bits of a coefficient of an encrypted row."""
        return self.room + 2 * FRACTION_BITS

    @property
    def hidden(self) -> int:
        """Bits of a coefficient of c1 of its answer."""
        return self.room + 17

    def asked(self, opened: int, tiles: int) -> int:
        """Bits of a coefficient of a question, 55 at most (`PolynomialRing.fractions`)."""
        return min(55, opened + self.shared + 8 + (tiles.bit_length() + 1) // 2)

    def answered(self, opened: int) -> int:
        """Bits of a word of an answer, and of a coefficient of its c1."""
        return opened + 8


def blocks_of(width: int) -> int:
    """Count the polynomials of a row of ``width`` directions, of which each holds N/2."""
    return -(-width // (FEATURES.degree // 2))


def kept_columns(width: int, *, pairs: bool) -> int:
    """Count the coefficients that two parties share per row of ``width`` directions.

    Of a polynomial they are N/2 for cosines, or N with their sines.
    """
    return blocks_of(width) * (FEATURES.degree if pairs else FEATURES.degree // 2)


_GATHERED = 4
_FEWEST_GATHERED = 1024


def gathered_answers(polynomials: int) -> int:
    """Count the answers that share one c1, where so many polynomials are to be answered.

    Four where they are many: a switching key for four is 1.6 MB, and saves 6.5 KB a polynomial.
    For more its size would grow by their square and its errors with it, to save what is left.
    """
    return _GATHERED if polynomials >= _FEWEST_GATHERED else 1
