"""Parameters of the lattice encryption, within the homomorphic encryption standard for 128 bits.

Polynomials are those of the cyclotomic ring Z_q[X]/(X^N + 1), N a power of two and q a product of
primes p ≡ 1 mod 2N below 2^24. Secrets are ternary and errors centred binomial of deviation 3.24,
which are the distributions of the standard's table (Albrecht et al., Homomorphic Encryption
Security Standard, 2018, Table 1: ternary secret, 128 bits against classical attacks).
`tests/secure/two_party/lattice/lattice_estimate.py` computes the cost of the attack on which that
table rests, for these parameters and for fewer dimensions than they have.
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
