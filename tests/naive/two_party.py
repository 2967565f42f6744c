"""The lattice encryption with schoolbook polynomials: integers, one coefficient at a time."""

from __future__ import annotations

import cmath
import math

import numpy as np

Polynomial = list[int]


def whole(residues: np.ndarray, primes: tuple[int, ...]) -> np.ndarray:
    """Whole numbers around zero by their residues mod all primes (primes, …), as Python's own."""
    q = math.prod(primes)
    total = np.zeros(residues.shape[1:], object)
    for limb, prime in zip(residues.astype(object), primes, strict=True):
        total += limb * (q // prime * pow(q // prime, -1, prime))
    return (total + q // 2) % q - q // 2


def product(a: Polynomial, b: Polynomial, q: int) -> Polynomial:
    """a·b mod X^N + 1 and mod q."""
    degree = len(a)
    found = [0] * degree
    for i, x in enumerate(a):
        if x:
            for j, y in enumerate(b):
                if i + j < degree:
                    found[i + j] += x * y
                else:
                    found[i + j - degree] -= x * y
    return [x % q for x in found]


def added(a: Polynomial, b: Polynomial, q: int) -> Polynomial:
    return [(x + y) % q for x, y in zip(a, b, strict=True)]


def encrypt(
    message: Polynomial, c1: Polynomial, secret: Polynomial, error: Polynomial, q: int
) -> Polynomial:
    """c0 = m + e − c1·s."""
    masked = product(secret, c1, q)
    return [(m + e - x) % q for m, e, x in zip(message, error, masked, strict=True)]


def phase(c0: Polynomial, c1: Polynomial, secret: Polynomial, q: int) -> Polynomial:
    """c0 + c1·s, as numbers around zero."""
    total = added(c0, product(secret, c1, q), q)
    return [x - q if x > q // 2 else x for x in total]


def digits(number: int, q: int, count: int, bits: int) -> list[int]:
    """Digits d_j around zero, lowest first, with number ≈ Σ_j d_j·q·2^(bits·j)/2^(bits·count)."""
    size = 2 ** (bits * count)
    word = (number % q * size + q // 2) // q % size
    found = []
    for _ in range(count):
        digit = word % 2**bits
        digit -= 2**bits if digit >= 2 ** (bits - 1) else 0
        found.append(digit)
        word = (word - digit) // 2**bits
    return found


def switched(
    c0: list[Polynomial],
    c1: list[Polynomial],
    a: list[Polynomial],
    b: list[Polynomial],
    q: int,
    count: int,
    bits: int,
) -> tuple[Polynomial, Polynomial]:
    """c0 of the first ciphertext after key switching, and the c1 that all share."""
    first, common = c0[0], [0] * len(c0[0])
    for i, polynomial in enumerate(c1):
        written = [digits(x, q, count, bits) for x in polynomial]
        for j in range(count):
            digit = np.array([one[j] for one in written], object)
            place = i * count + j
            first = added(first, _convolved(digit, b[place], q), q)
            common = added(common, _convolved(digit, a[place], q), q)
    return first, common


def _convolved(x: np.ndarray, y: Polynomial, q: int) -> Polynomial:
    """x·y mod X^N + 1, as `product`: |x| is small, and y is cut in halves that int64 can hold."""
    total = np.zeros(len(y), object)
    for shift in (0, 24):
        half = np.array([(v % q >> shift) & (2**24 - 1) for v in y], np.int64)
        long = np.convolve(x.astype(np.int64), half)
        total += (long[: len(y)] - np.append(long[len(y) :], 0)).astype(object) << shift
    return [int(v) % q for v in total]


def slots(polynomial: list[float]) -> list[complex]:
    """Values at exp(iπ(4j + 1)/N), by Horner's rule."""
    degree = len(polynomial)
    found = []
    for j in range(degree // 2):
        root, value = cmath.exp(1j * cmath.pi * (4 * j + 1) / degree), 0j
        for coefficient in reversed(polynomial):
            value = value * root + coefficient
        found.append(value)
    return found


def tile(rows: list[list[int]]) -> Polynomial:
    """Σ Y[i, j] X^(ik + k−1−j)."""
    return [entry for row in rows for entry in reversed(row)]


def over_columns(vector: list[int], degree: int) -> Polynomial:
    """Σ_j v_j X^j."""
    return [*vector, *[0] * (degree - len(vector))]


def over_rows(vector: list[int], columns: int) -> Polynomial:
    """Σ_i r_i X^(−ik)."""
    degree = len(vector) * columns
    found = [0] * degree
    for i, entry in enumerate(vector):
        if i:
            found[degree - i * columns] = -entry
        else:
            found[0] = entry
    return found
