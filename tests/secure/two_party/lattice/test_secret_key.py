"""Key generation, encryption and decryption, number by number against the schoolbook."""

from __future__ import annotations

import numpy as np

from tests.naive.two_party import encrypt, phase, whole
from vertikal.secure.two_party.lattice.parameters import DEVIATION, FEATURES, LatticeParameters
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing
from vertikal.secure.two_party.lattice.secret_key import SecretKey
from vertikal.secure.two_party.lattice.small_numbers import SmallNumbers

SMALL = LatticeParameters(1024, (16760833,))


def uniform(ring, count=1, seed=0):
    words = np.random.default_rng(seed).integers(
        0, 2**63, (len(ring.primes), count, ring.degree), dtype=np.uint64
    )
    return ring.reduce(words)


def test_encryption_is_that_of_the_schoolbook():
    ring = PolynomialRing(SMALL)
    (q,) = ring.primes
    key = SecretKey(ring, SmallNumbers(bytes(32)))
    again = SmallNumbers(bytes(32))
    secret = again.ternary((1, ring.degree))[0].tolist()
    c1 = uniform(ring)
    message = np.arange(ring.degree)[None] - 500
    c0 = key.encrypt(c1, ring.lift(message))[0, 0].tolist()
    error = again.errors((1, ring.degree))[0].tolist()
    coefficients = ring.coefficients(c1.copy())[0, 0].tolist()
    assert c0 == encrypt(message[0].tolist(), coefficients, secret, error, q)
    found = phase(c0, coefficients, secret, q)
    assert found == [m + e for m, e in zip(message[0].tolist(), error, strict=True)]
    times = key.times(c1.copy())[0, 0].tolist()
    assert [(a + b) % q for a, b in zip(c0, times, strict=True)] == [x % q for x in found]


def test_a_public_key_is_an_encryption_of_zero():
    ring = PolynomialRing(FEATURES)
    key = SecretKey(ring)
    a = uniform(ring, seed=1)
    b = key.public_key(a)
    error = whole(ring.add(b, key.times(a)), ring.primes).astype(float)
    assert 0.9 * DEVIATION < error.std() < 1.1 * DEVIATION
    assert np.abs(error).max() <= 21


def test_every_key_and_every_error_is_another():
    ring = PolynomialRing(FEATURES)
    a = uniform(ring)
    first, second = SecretKey(ring), SecretKey(ring)
    keys = [first.public_key(a), first.public_key(a), second.public_key(a)]
    assert len({key.tobytes() for key in keys}) == 3
    assert not np.array_equal(first.times(a.copy()), second.times(a.copy()))
