"""Arithmetic in Z_q[X]/(X^N + 1) against schoolbook polynomials; numpy and machine code agree."""

from __future__ import annotations

import builtins
import importlib.util

import numpy as np
import pytest

from tests.naive.two_party import product, whole
from vertikal.secure.two_party.lattice import loops as loops_module
from vertikal.secure.two_party.lattice.loops import LOOPS, NumpyLatticeLoops
from vertikal.secure.two_party.lattice.parameters import FEATURES, PRODUCTS, LatticeParameters
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing

SMALL = LatticeParameters(1024, (16760833,))
every_loops = pytest.mark.parametrize(
    "loops", [LOOPS, NumpyLatticeLoops()], ids=["installed", "numpy"]
)


def residues(ring, count, seed=0):
    generator = np.random.default_rng(seed)
    return np.stack(
        [
            generator.integers(0, prime, (count, ring.degree), dtype=np.uint32)
            for prime in ring.primes
        ]
    )


@every_loops
def test_products_are_those_of_the_schoolbook(loops):
    ring = PolynomialRing(SMALL, loops)
    a, b, c = (residues(ring, 1, seed) for seed in range(3))
    (prime,) = ring.primes
    expected = product(a[0, 0].tolist(), b[0, 0].tolist(), prime)
    expected = [(x + y) % prime for x, y in zip(expected, c[0, 0].tolist(), strict=True)]
    total = ring.multiply_add(ring.values(a), ring.values(b), ring.values(c))
    assert ring.coefficients(total)[0, 0].tolist() == expected


@pytest.mark.parametrize("parameters", [FEATURES, PRODUCTS], ids=["features", "products"])
def test_numpy_and_machine_code_agree(parameters):
    installed, plain = PolynomialRing(parameters), PolynomialRing(parameters, NumpyLatticeLoops())
    start = residues(installed, 6)
    values = installed.values(start.copy())
    assert np.array_equal(values, plain.values(start.copy()))
    assert installed.all_below(values)
    assert np.array_equal(installed.coefficients(values.copy()), start)
    assert np.array_equal(plain.coefficients(values.copy()), start)
    one = values[:, :1].copy()
    assert np.array_equal(
        installed.multiply_add(values, one, start), plain.multiply_add(values, one, start)
    )
    matrix = values.reshape(len(parameters.primes), 2, 3, parameters.degree)
    for sums, size in (("forward_sums", 3), ("adjoint_sums", 2)):
        vectors = residues(installed, 2 * size, 5).reshape(
            len(parameters.primes), 2, size, parameters.degree
        )
        found = getattr(installed, sums)(matrix, vectors)
        assert np.array_equal(found, getattr(plain, sums)(matrix, vectors))
        across = vectors[:, :, None] if sums == "forward_sums" else vectors[:, :, :, None]
        whole = (matrix[:, None].astype(object) * across).sum(axis=3 if size == 3 else 2)
        for limb, expected, prime in zip(found, whole, parameters.primes, strict=True):
            assert np.array_equal(limb, expected % prime)


@every_loops
def test_words_become_residues(loops):
    ring = PolynomialRing(PRODUCTS, loops)
    words = np.random.default_rng(1).integers(
        0, 2**64 - 1, (3, 2, ring.degree), dtype=np.uint64, endpoint=True
    )
    words[:, 0, :2] = [0, 2**64 - 1]
    for limb, part, prime in zip(ring.reduce(words), words, ring.primes, strict=True):
        assert limb.tolist() == [[int(word) % prime for word in row] for row in part]


def test_small_numbers_are_lifted_and_read_back():
    ring = PolynomialRing(PRODUCTS)
    numbers = np.random.default_rng(2).integers(-(2**23), 2**23, (2, ring.degree))
    lifted = ring.lift(numbers)
    assert ring.all_below(lifted)
    assert np.array_equal(whole(lifted, ring.primes), numbers)
    doubled = ring.add(lifted, lifted)
    assert ring.all_below(doubled)
    assert np.array_equal(whole(doubled, ring.primes), 2 * numbers)
    assert np.array_equal(whole(ring.negative(lifted), ring.primes), -numbers)


@every_loops
@pytest.mark.parametrize("parameters", [FEATURES, PRODUCTS], ids=["features", "products"])
def test_fractions_and_scaled_words(parameters, loops):
    ring = PolynomialRing(parameters, loops)
    q = ring.modulus
    generator = np.random.default_rng(3)
    numbers = [int.from_bytes(generator.bytes(16)) % q for _ in range(ring.degree - 2)] + [0, q - 1]
    by_prime = np.array([[[x % p for x in numbers]] for p in ring.primes], np.uint32)
    for bits in (14, 28, 39, 52):
        words = ring.fractions(by_prime, bits)
        exact = [(2 * (x << bits) + q) // (2 * q) % 2**bits for x in numbers]
        # Each prime's part is cut off at 2^-56, which at 52 bits rarely comes to one.
        away = [(int(a) - b) % 2**bits for a, b in zip(words[0], exact, strict=True)]
        assert set(away) <= ({0, 1, 2**bits - 1} if bits == 52 else {0})
        around = [x - 2**bits if x > 2 ** (bits - 1) else x for x in away]
        assert abs(np.mean(around)) < 0.04
        scaled = [(2 * q * int(word) + 2**bits) // 2 ** (bits + 1) for word in words[0]]
        for limb, prime in zip(ring.scaled(words, bits), ring.primes, strict=True):
            assert limb[0].tolist() == [x % prime for x in scaled]


def test_fractions_of_residues_up_to_twice_the_primes():
    ring = PolynomialRing(FEATURES)
    right = residues(ring, 2)
    twice = right + np.array(ring.primes, np.uint32).reshape(-1, 1, 1)
    assert np.array_equal(ring.fractions(right, 39), ring.fractions(twice, 39))


def test_folded_coefficients():
    ring = PolynomialRing(FEATURES)
    coefficients = residues(ring, 1)
    for limb, folded, prime in zip(
        coefficients, ring.folded(coefficients), ring.primes, strict=True
    ):
        c = [int(x) for x in limb[0]]
        expected = [c[0], *(c[k] - c[-k] for k in range(1, ring.degree // 2))]
        assert [int(x) % prime for x in folded[0]] == [x % prime for x in expected]


def test_residues_beyond_a_prime_are_seen():
    ring = PolynomialRing(FEATURES)
    right = residues(ring, 1)
    assert ring.all_below(right)
    right[1, 0, 5] = ring.primes[1]
    assert not ring.all_below(right)


def test_without_numba_the_loops_are_numpys(monkeypatch):
    original = builtins.__import__

    def refuse(name, *args, **options):
        if name == "vertikal.secure.two_party.lattice" and "loops_compiled" in (args[2] or ()):
            raise ImportError(name)
        return original(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    spec = importlib.util.find_spec(loops_module.__name__)
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    assert isinstance(fresh.LOOPS, fresh.NumpyLatticeLoops)
