"""Vectors as whole numbers in words of 32 bits, so that no product wraps.

Features leave a room of so many bits above their fraction (`parameters.WordLengths`), so full scale
of a product is 2^(room − 1) units of the vector.

A forward product Σ_j v_j cos θ_j is at most ‖v‖₁; with cosine and sine of a phase together, at most
the sum of their common lengths. So v is scaled such that this comes to full scale.

An adjoint product is taken by coefficients: Σ_i r_i h_ik, where h_k = (4/N) Σ_j cos θ_j cos(…) over
the N/2 directions of a block. Each party adds an offset to every direction, uniform and by itself,
so that the cos θ_j of a row are independent, and h_k is sub-Gaussian of deviation √(2/N) or less.
So is each convex combination of rows, by Jensen's inequality: eight deviations are exceeded with a
probability of 2·exp(−32), which is 2^-35 for all 1,024 coefficients of a block together. For
N = 2,048 these are `LARGEST` = 1/4 of ‖r‖₁, and r is scaled such that this comes to full scale.
With pairs the coefficients are c_k, of deviation √(1/N).

The linear kernel has no offsets: its features are sines of angles ωᵀx. For a row these are
independent too, since each direction is drawn by itself, and of mean zero, since ω and −ω are
equally likely; so the bound is the same. Pairs, whose cosines would all be near 1, are refused with
that kernel.

Gradients over directions are the coefficients turned by a matrix of cosines, 22.6 times as long as
an orthogonal one (with pairs 32 times); so noise of b bits of a word's full scale is b − 2.6 bits
of ‖r‖₁.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import RingError
from vertikal.secure.hidden.fixed_point import rounded
from vertikal.secure.two_party.lattice.parameters import FEATURES

Array = npt.NDArray[Any]

LARGEST = {False: 8 * math.sqrt(2 / FEATURES.degree), True: 8 * math.sqrt(1 / FEATURES.degree)}
"""Largest coefficient of a convex combination of rows, without and with pairs."""
GRADIENT_SPREAD = 2
"""Bits by which a gradient over coefficients is opened more precisely than it comes to over
directions, but for 0.6 of a bit."""
MOST_BITS = 14
"""Most bits that a product is opened to: beyond them its own rounding is noise enough."""
_MARGIN = 1.05
"""Rounding and errors of the encryption make a feature a little larger than 1."""
_FINEST = 2.0**40


@dataclass(frozen=True)
class VectorWriting:
    """Words for vectors that meet a matrix of ``matrix_bits`` fraction bits."""

    matrix_bits: int

    def words(self, vectors: Array, norms: Array, noise: float) -> tuple[Array, Array]:
        """Words (size, k) of vectors, and the units (k,) by which their products are divided.

        ``norms`` bound each product with features; ``noise`` is the share of full scale that is
        added to it.
        """
        if not np.isfinite(vectors).all():
            raise RingError("two parties: vectors must be finite, got NaN or infinity")
        full = (1 - noise) * 2.0 ** (31 - self.matrix_bits) / _MARGIN
        # A vector of zeros takes any scale; the finest, or noise on its product would seem large.
        scales = np.divide(full, norms, out=np.full(norms.shape, _FINEST), where=norms > 0)
        whole = np.empty(vectors.shape, np.uint32)
        for column, scale in enumerate(scales):
            whole[:, column] = rounded(vectors[:, column] * scale).astype(np.uint32)
        return whole, scales * 2.0**self.matrix_bits

    def numbers(self, words: Array, units: Array) -> Array:
        """Real numbers (size, k) of words of products."""
        return words.view(np.int32) / units
