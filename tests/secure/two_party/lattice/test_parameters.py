"""Parameters of the lattice encryption: the standard's table, and the attack behind it."""

from __future__ import annotations

import math

import pytest

from tests.secure.two_party.lattice.lattice_estimate import bits_of_security
from vertikal.errors import InputError
from vertikal.secure.two_party.lattice.parameters import (
    DEVIATION,
    FEATURES,
    MOST_ANSWERS,
    PRODUCTS,
    STANDARD,
    LatticeParameters,
)

TERNARY = math.sqrt(2 / 3)


def bits(degree: int, modulus_bits: float) -> float:
    return bits_of_security(degree, modulus_bits, DEVIATION, TERNARY)


def test_the_formula_gives_the_standards_table():
    for degree, most in STANDARD.items():
        assert 127.5 <= bits(degree, most) < 140
        assert bits(degree, 1.2 * most) < 128


@pytest.mark.parametrize("parameters", [FEATURES, PRODUCTS], ids=["features", "products"])
def test_the_parameters_have_room_above_128_bits(parameters):
    modulus = math.log2(parameters.modulus)
    assert modulus < STANDARD[parameters.degree] - 6
    assert bits(parameters.degree, modulus) > 140


def test_as_many_answers_as_are_allowed_leave_128_bits():
    """An attacker who wants the secret of any one answer has a chance with each of them."""
    for parameters in (FEATURES, PRODUCTS):
        modulus = math.log2(parameters.modulus)
        assert bits(parameters.degree, modulus) - math.log2(MOST_ANSWERS) > 128


def test_primes_are_primes():
    for prime in (*FEATURES.primes, *PRODUCTS.primes):
        assert all(prime % divisor for divisor in range(2, math.isqrt(prime) + 1))


@pytest.mark.parametrize(
    ("degree", "primes", "message"),
    [
        (512, (12289,), "degree must be one of [1024, 2048, 4096, 8192], got 512"),
        (1024, (12288,), "primes must be below 2^24 and 1 mod 2048, got 12288"),
        (2048, (16760833 + (1 << 24),), "primes must be below 2^24 and 1 mod 4096, got 33538049"),
        (1024, (12289, 40961), "primes must be different ones, of 27 bits in all"),
        (4096, (40961, 40961), "primes must be different ones, of 109 bits in all"),
    ],
)
def test_parameters_outside_the_table_are_refused(degree, primes, message):
    with pytest.raises(InputError) as error:
        LatticeParameters(degree, primes)
    assert str(error.value).startswith(message)
