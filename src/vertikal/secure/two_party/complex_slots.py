"""Polynomials that hold N/2 complex numbers, multiplied slot by slot when polynomials are.

Slot j of a polynomial is its value at ζ^(4j + 1), ζ = exp(iπ/N). A real polynomial has N/2 such
values (the others are their conjugates), and

    c_k = (2/N) Re Σ_j z_j ζ^(−k(4j + 1))          Re z_j = Σ_k c_k cos(πk(4j + 1)/N).

Slots of the label party and of the other hold e^{ia} and e^{ib}; their product holds e^{iθ}. Real
parts depend on N/2 numbers only, h_0 = c_0 and h_k = c_k − c_{N−k}, since
cos(π(N − k)(4j + 1)/N) = −cos(πk(4j + 1)/N): `PolynomialRing.folded` takes these. Where sines are
wanted too, all c_k are.

With N = 4: ζ = exp(iπ/4), slots at ζ and ζ^5 = −ζ. z = (1, 0) is c = (1/2)(1, cos 45°, 0, −cos 45°)
= (0.5, 0.354, 0, −0.354), and h = (0.5, 0.707); 0.5 + 0.707·cos 45° = 1 is Re z_0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

Array = npt.NDArray[Any]


def polynomials_of(slots: Array) -> Array:
    """Real coefficients (count, N) of complex slots (count, N/2)."""
    half = slots.shape[-1]
    # Σ_j z_j exp(−iπk(4j + 1)/N) for k < N/2 is a Fourier transform; the other half is its
    # imaginary part, since c_{k + N/2} takes another factor of −i.
    turned = fft.fft(slots, axis=-1)
    turned *= np.exp(-1j * np.pi * np.arange(half) / (2 * half)) / half
    return np.asarray(np.concatenate((turned.real, turned.imag), axis=-1))


@cache
def basis(degree: int, *, pairs: bool) -> Array:
    """Matrix that takes kept coefficients to features: (N/2, N/2), with ``pairs`` (N, N).

    Features are the real parts of all slots, with ``pairs`` followed by their imaginary parts.
    """
    half = degree // 2
    k, places = np.arange(degree if pairs else half), 4 * np.arange(half) + 1
    # Reduced as integers, so that large multiples of π lose no digit.
    angles = np.outer(k, places) % (2 * degree) * (np.pi / degree)
    found = np.cos(angles)
    if pairs:
        found = np.hstack((found, np.sin(angles)))
    found.flags.writeable = False
    return np.asarray(found)
