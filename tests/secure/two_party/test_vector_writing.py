"""Vectors in words: full scale is used, nothing wraps, and coefficients stay within their bound."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.secure.two_party.complex_slots import polynomials_of
from vertikal.secure.two_party.lattice.parameters import FEATURES
from vertikal.secure.two_party.vector_writing import LARGEST, VectorWriting


def test_products_come_to_full_scale_and_no_further():
    writing = VectorWriting(12)
    vectors = np.random.default_rng(0).standard_normal((500, 3)) * [1e-9, 1.0, 1e9]
    words, units = writing.words(vectors, np.abs(vectors).sum(axis=0), 2.0**-6)
    signs = np.sign(vectors) * 2**12
    largest = (words.view(np.int32) * signs).sum(axis=0)
    assert (largest < (1 - 2.0**-6) * 2.0**31).all()
    assert (largest > 0.9 * 2.0**31).all()
    products = writing.numbers(largest.astype(np.int64).astype(np.uint32)[None], units)
    assert np.allclose(products, np.abs(vectors).sum(axis=0), rtol=1e-3)


@pytest.mark.parametrize("pairs", [False, True], ids=["cosines", "pairs"])
def test_coefficients_of_random_phases_are_small(pairs):
    half = FEATURES.degree // 2
    slots = np.exp(2j * np.pi * np.random.default_rng(1).random((200, half)))
    c = polynomials_of(slots)
    kept = c if pairs else np.hstack((c[:, :1], c[:, 1:half] - c[:, :half:-1]))
    deviation = LARGEST[pairs] / 8
    assert abs(kept[:, 1:].std() / deviation - 1) < 0.02
    assert np.abs(kept).max() < 0.8 * LARGEST[pairs]


@pytest.mark.parametrize("length", [0.3, 1.0, 10.0], ids=["near", "far", "beyond"])
def test_coefficients_of_the_linear_kernel_are_no_larger(length):
    """Its angles are ωᵀx without offsets: small for most rows, beyond a turn for the farthest."""
    half = FEATURES.degree // 2
    angles = length * np.random.default_rng(2).standard_normal((200, half))
    c = polynomials_of(np.exp(1j * (angles - np.pi / 2)))
    kept = np.hstack((c[:, :1], c[:, 1:half] - c[:, :half:-1]))
    assert kept.std() < 1.02 * LARGEST[False] / 8
    assert np.abs(kept).max() < 0.8 * LARGEST[False]
