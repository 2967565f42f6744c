"""Two parties, step 2: products of the shared matrix with a vector of A's, under A's key.

A holds G, B holds Y, both (rows, columns) of words mod 2^32. A is to learn (G + Y) v and (G + Y)ᵀr
for its vectors, with noise of B's; G v is A's own work, Y v is done on encryptions of v.

B cuts Y into tiles of N/k rows and k columns, each the coefficients of a polynomial
T = Σ Y[i, j] X^(ik + k−1−j). For a vector over the tile's columns and one over its rows

    (Σ_j v_j X^j)·T        has  Σ_j Y[i, j] v_j  as coefficient ik + k−1,
    (Σ_i r_i X^(−ik))·T    has  Σ_i Y[i, j] r_i  as coefficient k−1−j,

so that one transform of each tile, made once, serves both. A encrypts round(q·v/2^32); B adds up
over tiles, adds an encryption of zero, and sends of c0 only the wanted coefficients, in words of 32
bits with its noise, and c1 in words of 24 bits.

With N = 4, k = 2 and the tile ((1, 2), (3, 4)): T = 2 + X + 4X² + 3X³. For v = (5, 6),
(5 + 6X)·T = −8 + 17X + 26X² + 39X³ by X⁴ = −1, and 17 and 39 are 1·5 + 2·6 and 3·5 + 4·6.

Proof sketch. B receives RLWE ciphertexts under A's key. A receives c1, uniform to A as in
`shared_cosines`, and wanted coefficients of a phase with B's noise. Whatever A sent, that phase is
a linear function of Y, plus u·(b + a·s) and e·s with B's fresh u and e. These are small if b is a
public key; if it is not, the words tell N/k numbers at most about a u of N entries that serves this
answer only, and they are under the noise too. So A learns linear functions of Y, as many and of as
many bits as are counted (`hidden.openings`): noise leaves no word more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.ring.ring_matrix import KINDS
from vertikal.secure.hidden.opening_noise import OpeningNoise
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.two_party.ciphertext_link import CiphertextLink
from vertikal.secure.two_party.parameters import PRODUCTS
from vertikal.secure.two_party.polynomials import WIRE_BYTES, PolynomialRing, pack, unpack
from vertikal.secure.two_party.roles import TwoRoles

Array = npt.NDArray[Any]

MOST_TOLD = 512
"""Most coefficients of one ciphertext that an answer tells."""
_ANSWER_BITS = 24
"""Bits of c1 in an answer; what they round off is 2^-19 of full scale."""
_WORD_BITS = 32


def tile_columns(rows: int, columns: int, degree: int) -> int:
    """Return k, the columns of a tile, for which the fewest ciphertexts travel.

    It is a power of two that divides ``columns``, and neither side of a tile is longer than
    `MOST_TOLD`. With 32,561 rows, 1,024 columns and N = 4,096 it is 8: tiles are 128 across and 64
    down.
    """
    sizes = [1 << i for i in range(degree.bit_length()) if degree >> i <= MOST_TOLD >= 1 << i]
    return min(
        (k for k in sizes if columns % k == 0), key=lambda k: columns // k - (-rows * k // degree)
    )


class EncryptedProduct:
    """One party's part in all products with one matrix; blocks of rows are added first."""

    def __init__(
        self, mesh: Mesh, keys: PairKeys, roles: TwoRoles, rows: int, columns: int
    ) -> None:
        self._mesh, self._roles = mesh, roles
        self._shape = rows, columns
        self._ring = PolynomialRing(PRODUCTS)
        self._link = CiphertextLink(mesh, keys, roles, self._ring, "products")
        degree = self._ring.degree
        self._across = tile_columns(rows, columns, degree)
        self._down = degree // self._across
        self._tiles = -(-rows // self._down), columns // self._across
        self._filled = 0
        if mesh.me == roles.label_party:
            self._own = np.empty((rows, columns), np.uint32)  # G
        else:
            self._noise = OpeningNoise(np.uint32)
            self._waiting = np.zeros((self._down, columns), np.uint32)
            # Values of all tiles of Y: (primes, tiles down, tiles across, N).
            self._matrix = np.empty((len(self._ring.primes), *self._tiles, degree), np.uint32)

    @property
    def nbytes(self) -> int:
        """Bytes that this party keeps."""
        kept = self._own if self._mesh.me == self._roles.label_party else self._matrix
        return kept.nbytes

    def add_as_label_party(self, block: Array) -> None:
        """A: keep the next rows of G."""
        self._own[self._filled : self._filled + len(block)] = block
        self._filled += len(block)

    def add_as_helper(self, block: Array) -> None:
        """B: keep the next rows of Y, as tiles."""
        while len(block):
            place = self._filled % self._down
            part, block = np.split(block, [self._down - place])
            self._waiting[place : place + len(part)] = part
            self._filled += len(part)
            if self._filled % self._down == 0 or self._filled == self._shape[0]:
                self._keep_tiles((self._filled - 1) // self._down)

    def _keep_tiles(self, number: int) -> None:
        """Transform the rows that are waiting to the next row of tiles."""
        ring, (_, across) = self._ring, self._tiles
        tiles = self._waiting.reshape(self._down, across, self._across)[:, :, ::-1]
        words = tiles.transpose(1, 0, 2).reshape(across, ring.degree).astype(np.uint64)
        residues = ring.reduce(np.broadcast_to(words, (len(ring.primes), *words.shape)))
        self._matrix[:, number] = ring.values(residues)
        self._waiting[:] = 0

    def ask(self, kind: str, vectors: Array) -> Array:
        """A: compute (G + Y) v, or the transpose, for the columns v of ``vectors``, uint32."""
        ring, outputs = self._ring, vectors.shape[1]
        words = self._written(kind, vectors)
        for one in words:
            self._link.send_encrypted(kind, ring.scaled(one))
        result = KINDS[kind](self._own, vectors)  # while B works
        helper, length = self._roles.helper, len(result)
        tag = self._link.tag(f"{kind}/answer")
        c0 = self._mesh.recv_array(helper, tag, np.uint32, (length, outputs))
        shape = (outputs, self._counts(kind)[1], ring.degree)
        size = WIRE_BYTES * math.prod(shape)
        c1 = unpack(self._mesh.recv_array(helper, f"{tag}/hidden", np.uint8, (size,)), shape)
        for output in range(outputs):
            # Words of 24 bits as numbers of both signs; c1·s is a whole number below 2^36.
            signed = (c1[output] << np.uint32(8)).view(np.int32) >> np.int32(8)
            half = 1 << (_ANSWER_BITS - 1)
            lifted = ring.lift(np.where(signed == -half, half - 1, signed))
            phase = ring.small(self._link.times_key(ring.values(lifted)))
            wanted = self._wanted(kind, phase, length)
            result[:, output] += (wanted << (_WORD_BITS - _ANSWER_BITS)).astype(np.uint32)
        result += c0
        return result

    def answer(self, kind: str, outputs: int, bits: int) -> None:
        """B: answer one product of ``outputs`` vectors, so that ``bits`` of full scale remain."""
        ring = self._ring
        asked, told = self._counts(kind)
        length = self._shape[0 if kind == "forward" else 1]
        sums = ring.forward_sums if kind == "forward" else ring.adjoint_sums
        c0_words = np.empty((length, outputs), np.uint32)
        c1_words = np.empty((outputs, told, ring.degree), np.uint32)
        for output in range(outputs):
            ciphertexts = np.stack(self._link.receive_encrypted(kind, asked), axis=1)
            totals = sums(self._matrix, ciphertexts)
            c0, c1 = self._link.hide(totals[:, 0], totals[:, 1])
            wanted = np.stack([self._wanted(kind, one, length) for one in ring.coefficients(c0)])
            c0_words[:, output] = ring.fractions(wanted, _WORD_BITS)
            c1_words[output] = ring.fractions(ring.coefficients(c1), _ANSWER_BITS)
        c0_words += self._noise.draw(c0_words.shape, bits)
        tag = self._link.tag(f"{kind}/answer")
        self._mesh.send(self._roles.label_party, tag, c0_words)
        self._mesh.send(self._roles.label_party, f"{tag}/hidden", pack(c1_words))

    def _counts(self, kind: str) -> tuple[int, int]:
        """Ciphertexts of a question, and of its answer."""
        down, across = self._tiles
        return (across, down) if kind == "forward" else (down, across)

    def _written(self, kind: str, vectors: Array) -> Array:
        """Words (outputs, ciphertexts, N) of the polynomials that stand for vectors."""
        count, outputs = self._counts(kind)[0], vectors.shape[1]
        words = np.zeros((outputs, count, self._ring.degree), np.uint32)
        if kind == "forward":
            words[:, :, : self._across] = vectors.T.reshape(outputs, count, self._across)
            return words
        padded = np.zeros((count * self._down, outputs), np.uint32)
        padded[: len(vectors)] = vectors
        # X^(−ik) = −X^(N − ik), and X^0 = 1.
        entries = -padded.T.reshape(outputs, count, self._down)
        words[:, :, 0] = -entries[:, :, 0]
        words[:, :, self._across :: self._across] = entries[:, :, :0:-1]
        return words

    def _wanted(self, kind: str, polynomials: Array, length: int) -> Array:
        """The coefficients (length,) of these polynomials (count, N) that hold the product."""
        if kind == "forward":
            return polynomials[:, self._across - 1 :: self._across].reshape(-1)[:length]
        return polynomials[:, : self._across][:, ::-1].reshape(-1)[:length]
