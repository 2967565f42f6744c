"""Slots of polynomials against their values at roots of unity, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive.two_party import slots
from vertikal.secure.two_party.complex_slots import basis, polynomials_of


def drawn(half, count=2):
    return np.exp(2j * np.pi * np.random.default_rng(half).random((count, half)))


@pytest.mark.parametrize("half", [2, 8, 64])
def test_slots_are_values_at_roots(half):
    numbers = drawn(half)
    for polynomial, expected in zip(polynomials_of(numbers), numbers, strict=True):
        assert np.allclose(slots(polynomial.tolist()), expected)


def test_products_of_polynomials_multiply_slots():
    a, b = drawn(8, 1), drawn(8, 2)[1:]
    long = np.convolve(polynomials_of(a)[0], polynomials_of(b)[0])
    wrapped = long[:16] - np.append(long[16:], 0)
    assert np.allclose(slots(wrapped.tolist()), a * b)


def test_features_are_real_and_imaginary_parts():
    numbers = drawn(64)
    c = polynomials_of(numbers)
    folded = np.hstack((c[:, :1], c[:, 1:64] - c[:, :64:-1]))
    assert np.allclose(folded @ basis(128, pairs=False), numbers.real)
    both = np.hstack((numbers.real, numbers.imag))
    assert np.allclose(c @ basis(128, pairs=True), both)


def test_the_example_of_the_page():
    c = polynomials_of(np.array([[1, 0]], complex))
    assert np.allclose(c, [[0.5, 0.125**0.5, 0, -(0.125**0.5)]])
