"""Parameters of the lattice encryption: the standard's table, and the attack behind it."""

from __future__ import annotations

import math

import pytest

from tests.secure.two_party.lattice_estimate import bits_of_security
from vertikal.errors import InputError
from vertikal.secure.two_party.ciphertext_link import EXACT_BITS, proof_bits
from vertikal.secure.two_party.encrypted_product import tile_columns
from vertikal.secure.two_party.parameters import (
    DEVIATION,
    FEATURES,
    MOST_ANSWERS,
    PRODUCTS,
    STANDARD,
    LatticeParameters,
    WordLengths,
)
from vertikal.secure.two_party.vector_writing import MOST_BITS

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


@pytest.mark.parametrize("parameters", [FEATURES, PRODUCTS], ids=["features", "products"])
def test_a_proven_public_key_leaves_words_without_its_errors(parameters):
    bits, degree = proof_bits(parameters.modulus), parameters.degree
    bound = parameters.modulus / 2 ** (bits + 1)
    # An honest key's own noise and what rounding adds are below the bound by eight deviations.
    noise = DEVIATION * math.sqrt(2 * degree * 2 / 3)
    rounding = parameters.modulus / 2**EXACT_BITS * math.sqrt((degree * 2 / 3 + 1) / 12)
    assert 8 * math.hypot(noise, rounding) < bound
    if parameters is FEATURES:
        # Words are rounded where A adds no more than a part of their last bit.
        for rows in (1, 32_561, 10**7):
            assert bound <= 2**-4 * parameters.modulus / 2 ** WordLengths(rows).shared
    else:
        assert bound < 2**-30 * parameters.modulus / 2**MOST_BITS


@pytest.mark.parametrize(
    ("rows", "columns", "across"),
    [(1, 1024, 512), (300, 1024, 128), (32_561, 1024, 8), (10**6, 1024, 8), (32_561, 4096, 32)],
)
def test_tiles_are_those_with_the_fewest_ciphertexts(rows, columns, across):
    assert tile_columns(rows, columns, 4096) == across
    counts = {k: columns // k + -(-rows // (4096 // k)) for k in (8, 16, 32, 64, 128, 256, 512)}
    assert counts[across] == min(counts.values())


@pytest.mark.parametrize(
    ("rows", "room"), [(1, 14), (1024, 14), (1025, 15), (32_561, 17), (65_537, 18), (10**9, 20)]
)
def test_words_have_room_for_sums_over_rows(rows, room):
    lengths = WordLengths(rows)
    assert lengths.room == room
    assert lengths.shared + lengths.unit == lengths.matrix_bits + room == 32
    if rows <= 1 << 22:
        # Of rounding each entry of a vector, as a part of full scale.
        assert math.sqrt(rows / 12) / 32 / 2 ** (room - 1) < 2**-14.7
    # The label party's share of the modulus leaves errors of the encryption below 0.4 %.
    left = FEATURES.modulus / 2 ** (lengths.encrypted - 11)
    assert DEVIATION * math.sqrt(FEATURES.degree / 2) / left < 0.004


@pytest.mark.parametrize("opened", [6, 12, 14])
def test_what_is_rounded_off_a_product_is_small_beside_its_noise(opened):
    noise, degree = 2.0**-opened / math.sqrt(12), PRODUCTS.degree
    for rows in (1000, 32_561, 10**6):
        lengths = WordLengths(rows)
        across = tile_columns(rows, 1024, degree)
        for tiles in (1024 // across, -(-rows * across // degree)):
            asked = 2.0 ** -lengths.asked(opened, tiles) * 2**lengths.shared
            asked *= math.sqrt(tiles * degree) / 6
            told = 2.0 ** -lengths.answered(opened) * math.sqrt(degree * 2 / 3 / 12)
            assert asked < noise * (0.3 if rows < 10**6 else 1)
            assert told < 0.3 * noise


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
