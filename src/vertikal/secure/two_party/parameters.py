"""Parameters of the lattice encryption, within the homomorphic encryption standard for 128 bits.

Polynomials are those of the cyclotomic ring Z_q[X]/(X^N + 1), N a power of two and q a product of
primes p ≡ 1 mod 2N below 2^24. Secrets are ternary and errors centred binomial of deviation 3.24,
which are the distributions of the standard's table (Albrecht et al., Homomorphic Encryption
Security Standard, 2018, Table 1: ternary secret, 128 bits against classical attacks).
`tests/secure/two_party/lattice_estimate.py` computes the cost of the attack on which that table
rests, for these parameters and for fewer dimensions than they have.

Words of which shares, questions and answers consist have the lengths that `WordLengths` works out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vertikal.errors import InputError

STANDARD = {1024: 27, 2048: 54, 4096: 109, 8192: 218}
"""Most bits of q by degree N."""

PRIME_BITS = 24
"""Residues are below 2^24, so that 2^15 products of two add up in a word."""

COINS = 21
"""Coins of each sign of a centred binomial error, as in SEAL; its deviation is √(21/2)."""
DEVIATION = math.sqrt(COINS / 2)


@dataclass(frozen=True)
class LatticeParameters:
    """Degree N and the primes whose product is q."""

    degree: int
    primes: tuple[int, ...]

    def __post_init__(self) -> None:
        most = STANDARD.get(self.degree)
        if most is None:
            raise InputError.of("degree", f"one of {list(STANDARD)}", self.degree)
        for prime in self.primes:
            if prime >= 1 << PRIME_BITS or prime % (2 * self.degree) != 1:
                raise InputError.of(
                    "primes", f"below 2^{PRIME_BITS} and 1 mod {2 * self.degree}", prime
                )
        if len(set(self.primes)) < len(self.primes) or self.modulus.bit_length() > most:
            raise InputError.of(
                "primes", f"different ones, of {most} bits in all", list(self.primes)
            )

    @property
    def modulus(self) -> int:
        """The modulus q."""
        return math.prod(self.primes)


FEATURES = LatticeParameters(2048, (11759617, 11677697))
"""Encryption of cosines and sines, once per row: q has 47 bits of the 54 that are allowed."""

PRODUCTS = LatticeParameters(4096, (16760833, 16736257, 16588801))
"""Encryption of vectors, in every product: q has 72 bits of the 109 that are allowed."""


MOST_ANSWERS = 1 << 22
"""Most polynomials of rows in one run. Each answer hides what it multiplied by under a secret of
its own, and an attacker who is content with any one of them has that many chances: 22 of the 151
bits of `FEATURES`. Products have more than 40 bits to spare."""

FRACTION_BITS = 11
"""Fraction bits of a shared feature, and those of the helper's polynomials."""


@dataclass(frozen=True)
class WordLengths:
    """Bits of everything that travels for ``rows`` rows, as few as the result can do with.

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
