"""Two parties, step 1: from phases a at the label party A and b at the helper B to shares of cos θ.

θ = a + b. A row's phases fill the slots of polynomials (`complex_slots`), N/2 directions each.

1. A encrypts polynomials whose slots are q/2^(11 + room)·e^{ia}, and sends c0.
2. B multiplies c0 and c1 by its polynomial with slots 2^11·e^{ib} and adds an encryption of zero
   (`CiphertextLink.hide`). It keeps c0, rounded to words of 11 + room bits: these are Y. It sends
   c1, one for four polynomials where there are many.
3. A multiplies c1 by its key: words G = c1·s, in units of q.

Words are kept as the upper bits of 32. Then G + Y mod 2^32 are the coefficients of a polynomial
with slots 2^(32 − room)·e^{iθ}, up to rounding and errors of 0.008 of a feature
(`word_lengths.WordLengths`, which says what the room is for). Only the folded half of the
coefficients is kept where cosines are all that is wanted.

Proof sketch. B receives c0 of RLWE ciphertexts under A's key: uniform to B if ring learning with
errors is hard. A receives c1·p + a·u + e with p B's polynomial, or a sum of such products: (a,
a·u + e) is an RLWE sample under B's fresh secret u, with a grown from the pair's seed, so that what
A receives is uniform to it, who knows s but not u. Nothing else is sent: Y is B's, and A will learn
of it what products open. A ciphertext that is not of the form above gives shares of another
multiple of each e^{ib}, and no more: what u and a switching key add to Y is below what words round
off, or at most their last bit in the largest tables, since A has proven its public keys
(`ciphertext_link`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.two_party.ciphertext_link import CiphertextLink
from vertikal.secure.two_party.complex_slots import basis, polynomials_of
from vertikal.secure.two_party.lattice.parameters import FEATURES
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.word_lengths import (
    FRACTION_BITS,
    WordLengths,
    blocks_of,
    gathered_answers,
    kept_columns,
)

Array = npt.NDArray[Any]

_CHUNK = 32
"""Polynomials at a time, a multiple of those that share an answer: their arrays stay near the
processor."""


class SharedCosines:
    """One party's part for ``width`` directions; with ``pairs`` sines are shared too."""

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        roles: TwoRoles,
        width: int,
        phase_bits: int,
        lengths: WordLengths,
        *,
        pairs: bool = False,
    ) -> None:
        self._pairs = pairs
        self._ring = PolynomialRing(FEATURES)
        self._half = self._ring.degree // 2
        self._blocks = blocks_of(width)
        gathered = gathered_answers(lengths.rows * self._blocks)
        self._link = CiphertextLink(mesh, keys, roles, self._ring, "features", gathered)
        self._width, self._lengths = width, lengths
        scale = self._ring.modulus * 2.0 ** -(FRACTION_BITS + lengths.room)
        if mesh.me == roles.helper:
            scale = 2.0**FRACTION_BITS
        turn = 2 * np.pi * np.arange(1 << phase_bits) / (1 << phase_bits)
        self._table = scale * np.exp(1j * turn)

    @property
    def columns(self) -> int:
        """Coefficients that are kept per row."""
        return kept_columns(self._width, pairs=self._pairs)

    def send(self, phases: Array) -> None:
        """A: send the encryption of the next rows (rows, width)."""
        for chunk in self._polynomials(phases):
            self._link.send_encrypted("cosines", self._ring.lift(chunk), self._lengths.encrypted)

    def receive(self, rows: int) -> Array:
        """A: return the share G of the rows that were sent first, uint32 (rows, columns)."""
        parts = [
            self._words(self._link.receive_hidden("hidden", count, self._lengths.hidden), 32)
            for count in self._counts(rows)
        ]
        return np.concatenate(parts).reshape(rows, self.columns)

    def answer(self, phases: Array) -> Array:
        """B: return the share Y of the next rows, with its own phases, uint32 (rows, columns)."""
        parts, lengths = [], self._lengths
        for chunk in self._polynomials(phases):
            c0, c1 = self._link.receive_encrypted("cosines", len(chunk), lengths.encrypted)
            own = self._ring.values(self._ring.lift(chunk))
            zero = np.zeros_like(own)
            c0, c1 = self._link.hide(
                self._ring.multiply_add(c0, own, zero), self._ring.multiply_add(c1, own, zero)
            )
            self._link.send_hidden("hidden", c1, lengths.hidden)
            words = self._words(self._ring.coefficients(c0), lengths.shared)
            parts.append(words << np.uint32(lengths.unit))
        return np.concatenate(parts).reshape(len(phases), self.columns)

    def kept_from_features(self, vectors: Array) -> Array:
        """Vectors over kept coefficients (columns, k) of vectors over features (features, k)."""
        return np.concatenate(
            [basis(self._ring.degree, pairs=self._pairs) @ part for part in self._by_block(vectors)]
        )

    def features_from_kept(self, vectors: Array) -> Array:
        """The transpose of `kept_from_features`: vectors (features, k) of vectors (columns, k)."""
        parts = [
            basis(self._ring.degree, pairs=self._pairs).T @ part
            for part in np.split(vectors, self._blocks)
        ]
        cosines = np.concatenate([part[: self._half] for part in parts])[: self._width]
        if not self._pairs:
            return cosines
        sines = np.concatenate([part[self._half :] for part in parts])[: self._width]
        return np.concatenate((cosines, sines))

    def _by_block(self, vectors: Array) -> list[Array]:
        """Cut vectors over features, cosines before sines, into those of each block of slots."""
        shape = (self._blocks * self._half, vectors.shape[1])
        found = []
        for part in np.split(vectors, 2 if self._pairs else 1):
            padded = np.zeros(shape)
            padded[: self._width] = part
            found.append(np.split(padded, self._blocks))
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _polynomials(self, phases: Array) -> Iterator[Array]:
        """Yield the rows' polynomials, rounded, in chunks (count, N)."""
        rows = len(phases)
        start = 0
        slots = np.zeros((rows, self._blocks * self._half), np.complex128)
        slots[:, : self._width] = self._table[phases]
        slots = slots.reshape(rows * self._blocks, self._half)
        for count in self._counts(rows):
            yield np.rint(polynomials_of(slots[start : start + count]))
            start += count

    def _counts(self, rows: int) -> list[int]:
        whole, rest = divmod(rows * self._blocks, _CHUNK)
        return [_CHUNK] * whole + [rest] * (rest > 0)

    def _words(self, coefficients: Array, bits: int) -> Array:
        """Words of those coefficients that are kept, uint32."""
        kept = coefficients if self._pairs else self._ring.folded(coefficients)
        return self._ring.fractions(kept, bits).astype(np.uint32)
