"""All that is done with the secret key of the encryption, which only the label party has.

RLWE encryption in Z_q[X]/(X^N + 1): a ciphertext of m is (c0, c1) with c1 uniform and
c0 = m + e − c1·s, so that c0 + c1·s = m + e, its phase. Both parties grow c1 from a seed that they
share, and c0 alone is sent, rounded. The public key is a ciphertext of zero, a = c1.

The other party multiplies ciphertexts by polynomials of its own, adds up, and adds u times the
public key with u ternary and an error to c1: then c1 looks uniform, also to who knows s, and
hides what it was multiplied by.

A switching key holds one key encrypted under another, for `key_switching`.

`tests/naive/two_party.py` does the same with schoolbook polynomials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.secure.two_party.lattice.polynomials import PolynomialRing
from vertikal.secure.two_party.lattice.small_numbers import SmallNumbers

Array = npt.NDArray[Any]


class SecretKey:
    """A ternary secret s, drawn when the object is made."""

    def __init__(self, ring: PolynomialRing, numbers: SmallNumbers | None = None) -> None:
        self._ring = ring
        self._numbers = numbers or SmallNumbers()
        secret = self._numbers.ternary((1, ring.degree))
        self._secret = ring.values(ring.lift(secret))
        self._negative = ring.negative(self._secret)

    def encrypt(self, c1: Array, messages: Array) -> Array:
        """c0 of ``messages`` under these c1 (values); messages and c0 by coefficients."""
        errors = self._ring.lift(self._numbers.errors(messages.shape[1:]))
        masks = self._ring.coefficients(
            self._ring.multiply_add(c1, self._negative, np.zeros_like(c1))
        )
        return self._ring.add(self._ring.add(messages, errors), masks)

    def public_key(self, a: Array) -> Array:
        """b = e − a·s, by coefficients: an encryption of zero."""
        return self.encrypt(a, np.zeros_like(a))

    def switching_key(self, a: Array, place: int, factors: Sequence[int], old: SecretKey) -> Array:
        """b of a switching key from ``old`` to this key, by coefficients (`key_switching`).

        Of the digits of which ``a`` (values) has a polynomial each, those from ``place`` on belong
        to the ciphertext that comes under this key: they are multiplied by ``factors`` and ``old``.
        """
        messages = np.zeros_like(a)
        for i, prime in enumerate(self._ring.primes):
            for j, factor in enumerate(factors, start=place):
                messages[i, j] = old._secret[i, 0].astype(np.uint64) * (factor % prime) % prime
        return self.encrypt(a, self._ring.coefficients(messages))

    def times(self, c1: Array) -> Array:
        """c1·s, the part of a phase that takes the key: values in, coefficients out."""
        return self._ring.coefficients(self._ring.multiply_add(c1, self._secret, np.zeros_like(c1)))
