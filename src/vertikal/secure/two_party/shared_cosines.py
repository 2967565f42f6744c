"""Two parties, step 1: from phases a at the label party A and b at the helper B to shares of cos θ.

θ = a + b. A row's phases fill the slots of polynomials (`complex_slots`), N/2 directions each.

1. A encrypts polynomials whose slots are q/2^(11 + room)·e^{ia}, and sends c0.
2. B multiplies c0 and c1 by its polynomial with slots 2^11·e^{ib}, adds an encryption of zero
   (`CiphertextLink.hide`), rounds c0 to words of 11 + room bits and adds a uniform mask −Y. It
   sends both.
3. A decrypts: words G = c0 + c1·s, in units of q.

Words are kept as the upper bits of 32. Then G + Y mod 2^32 are the coefficients of a polynomial
with slots 2^(32 − room)·e^{iθ}, up to rounding and errors of 0.008 of a feature
(`parameters.WordLengths`, which says what the room is for), G is uniform to A but for lower bits
that are A's own rounding, and Y is B's own. Only the folded half of the coefficients is kept where
cosines are all that is wanted.

Proof sketch. B receives c0 of RLWE ciphertexts under A's key: uniform to B if ring learning with
errors is hard. A receives words under a uniform mask, which say nothing whatever was asked, and
c1·p + a·u + e with p B's polynomial: (a, a·u + e) is an RLWE sample under B's fresh secret u, with
a grown from the pair's seed, so that the sum is uniform to A, who knows s but not u. A ciphertext
that is not of the form above gives shares of another multiple of each e^{ib}, and no more: the u in
them is below what words round off, since A has proven its public key (`ciphertext_link`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.two_party.ciphertext_link import CiphertextLink
from vertikal.secure.two_party.complex_slots import basis, polynomials_of
from vertikal.secure.two_party.parameters import (
    FEATURES,
    FRACTION_BITS,
    WordLengths,
    blocks_of,
    kept_columns,
)
from vertikal.secure.two_party.polynomials import PolynomialRing
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.small_numbers import SmallNumbers
from vertikal.secure.two_party.wire_words import pack, unpack, wire_bytes

Array = npt.NDArray[Any]

_CHUNK = 32
"""Polynomials at a time: their arrays stay near the processor."""


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
        self._mesh, self._roles, self._pairs = mesh, roles, pairs
        self._ring = PolynomialRing(FEATURES)
        self._link = CiphertextLink(mesh, keys, roles, self._ring, "features")
        self._half = self._ring.degree // 2
        self._blocks = blocks_of(width)
        self._width, self._lengths = width, lengths
        scale = self._ring.modulus * 2.0 ** -(FRACTION_BITS + lengths.room)
        if mesh.me == roles.helper:
            scale = 2.0**FRACTION_BITS
            self._masks = SmallNumbers()
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
        parts, bits = [], self._lengths.shared
        for count in self._counts(rows):
            shape = (count, self.columns // self._blocks)
            packed = self._mesh.recv_array(
                self._roles.helper,
                self._link.tag("masked"),
                np.uint8,
                (wire_bytes(math.prod(shape), bits),),
            )
            words = unpack(packed, shape, bits) << np.uint32(self._lengths.unit)
            hidden = self._link.receive_hidden("hidden", count, self._lengths.hidden)
            parts.append(words + self._words(hidden, 32))
        return np.concatenate(parts).reshape(rows, self.columns)

    def answer(self, phases: Array) -> Array:
        """B: return the share Y of the next rows, with its own phases, uint32 (rows, columns)."""
        parts, lengths = [], self._lengths
        unit = np.uint32(lengths.unit)
        for chunk in self._polynomials(phases):
            c0, c1 = self._link.receive_encrypted("cosines", len(chunk), lengths.encrypted)
            own = self._ring.values(self._ring.lift(chunk))
            zero = np.zeros_like(own)
            c0, c1 = self._link.hide(
                self._ring.multiply_add(c0, own, zero), self._ring.multiply_add(c1, own, zero)
            )
            words = self._words(self._ring.coefficients(c0), lengths.shared)
            # Words mod 2^bits, as the upper bits of 32: so do differences of them wrap.
            share = self._masks.words(words.shape, np.uint32) >> unit << unit
            masked = ((words << unit) - share) >> unit
            tag = self._link.tag("masked")
            self._mesh.send(self._roles.label_party, tag, pack(masked, lengths.shared))
            self._link.send_hidden("hidden", c1, lengths.hidden)
            parts.append(share)
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
