"""Key switching: several ciphertexts come under one c1, as the schoolbook does it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.naive.two_party import digits, switched, whole
from tests.secure.two_party.lattice.test_secret_key import uniform
from vertikal.secure.two_party.lattice.key_switching import (
    DIGIT_BITS,
    DIGITS,
    SwitchingKey,
    digits_of,
    gadget,
)
from vertikal.secure.two_party.lattice.parameters import DEVIATION, FEATURES
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing
from vertikal.secure.two_party.lattice.secret_key import SecretKey

RING = PolynomialRing(FEATURES)
COUNT = 4
PRIMES = len(RING.primes)


def switching_errors(count):
    """Deviations of what switching adds to a phase: the key's errors, and what digits cut off."""
    n = FEATURES.degree
    return (
        DEVIATION * math.sqrt(2 ** (2 * DIGIT_BITS) / 12) * math.sqrt(DIGITS * count * n),
        FEATURES.modulus / 2 ** (DIGITS * DIGIT_BITS) / math.sqrt(12) * math.sqrt(2 * n / 3),
    )


@pytest.fixture(scope="module")
def keys():
    """Return the old key, the new keys, and the helper's half of the switching key."""
    old, new = SecretKey(RING), [SecretKey(RING) for _ in range(COUNT)]
    a = uniform(RING, COUNT * DIGITS, seed=1)
    b = [
        RING.values(key.switching_key(a, i * DIGITS, gadget(RING.modulus), old))
        for i, key in enumerate(new)
    ]
    return old, new, a, np.stack(b, axis=1)


def test_digits_are_small_and_add_up():
    coefficients = uniform(RING, 3)
    found = digits_of(RING, coefficients)
    assert found.shape == (3, DIGITS, RING.degree)
    assert found.min() == -(2 ** (DIGIT_BITS - 1))
    assert found.max() == 2 ** (DIGIT_BITS - 1) - 1
    total = sum(
        found[:, j].astype(object) * factor for j, factor in enumerate(gadget(RING.modulus))
    )
    rest = (whole(coefficients, RING.primes) - total + RING.modulus // 2) % RING.modulus
    cut = RING.modulus >> (DIGITS * DIGIT_BITS)
    # Half a unit of the last digit, and half of each digit for the rounding of the factors.
    assert np.abs(rest - RING.modulus // 2).max() <= cut // 2 + 1 + DIGITS * 2 ** (DIGIT_BITS - 2)


def test_digits_are_those_of_the_schoolbook():
    coefficients = uniform(RING, 1)
    numbers = [int(x) for x in whole(coefficients, RING.primes)[0]]
    for number, found in zip(numbers, digits_of(RING, coefficients)[0].T.tolist(), strict=True):
        assert found == digits(number, RING.modulus, DIGITS, DIGIT_BITS)


@pytest.mark.parametrize("k", [COUNT, 1, COUNT + 3])
def test_phases_are_what_they_were(keys, k):
    """Also of fewer ciphertexts than share a c1, and of some beyond."""
    old, new, a, b = keys
    c0, c1 = uniform(RING, k, seed=2), uniform(RING, k, seed=3)
    before = RING.add(RING.coefficients(c0.copy()), old.times(c1))
    moved, shared = SwitchingKey(RING, COUNT, a, b).switch(c0.copy(), c1)
    assert moved.shape == c0.shape
    assert shared.shape == (PRIMES, -(-k // COUNT), RING.degree)
    RING.coefficients(moved)
    for i in range(k):
        times = new[i % COUNT].times(shared[:, i // COUNT : i // COUNT + 1])[:, 0]
        after = whole(RING.add(moved[:, i], times), RING.primes)
        error = after - whole(before[:, i], RING.primes) + RING.modulus // 2
        error = (error % RING.modulus - RING.modulus // 2).astype(float)
        together = min(COUNT, k - i // COUNT * COUNT)
        expected = math.hypot(*switching_errors(together))
        assert 0.85 < error.std() / expected < 1.15


def test_one_ciphertext_is_read_with_its_own_key_only(keys):
    _, new, a, b = keys
    moved, shared = SwitchingKey(RING, COUNT, a, b).switch(
        uniform(RING, 2, seed=2), uniform(RING, 2, seed=3)
    )
    other = RING.add(RING.coefficients(moved)[:, 0], new[1].times(shared)[:, 0])
    spread = whole(other, RING.primes).astype(float).std() / RING.modulus
    assert spread == pytest.approx(1 / math.sqrt(12), rel=0.05)


def test_switching_is_that_of_the_schoolbook(keys):
    """The shared c1 and the first c0, of two ciphertexts, number by number."""
    _, _, a, b = keys
    c0, c1 = uniform(RING, 2, seed=2), uniform(RING, 2, seed=3)
    moved, shared = SwitchingKey(RING, COUNT, a, b).switch(c0.copy(), c1)
    integers = [
        [[int(x) for x in row] for row in whole(RING.coefficients(one.copy()), RING.primes)]
        for one in (c0, c1, a[:, : 2 * DIGITS], b[:, 0, : 2 * DIGITS])
    ]
    first, common = switched(*integers, RING.modulus, DIGITS, DIGIT_BITS)
    for found, expected in ((moved[:, :1], first), (shared, common)):
        got = whole(RING.coefficients(found.copy()), RING.primes)[0]
        assert [int(x) % RING.modulus for x in got] == expected
