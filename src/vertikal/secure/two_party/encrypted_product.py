"""Two parties, step 2: products of the shared matrix with a vector of A's, under A's key.

A holds G, B holds Y, both (rows, columns) of words mod 2^32; of Y's only the upper W bits are not
zero (`parameters.WordLengths`). A is to learn (G + Y) v and (G + Y)ᵀr
for its vectors, with noise of B's; G v is A's own work, Y v is done on encryptions of v.

B cuts Y into tiles of N/k rows and k columns, each the coefficients of a polynomial
T = Σ Y[i, j] X^(ik + k−1−j). For a vector over the tile's columns and one over its rows

    (Σ_j v_j X^j)·T        has  Σ_j Y[i, j] v_j  as coefficient ik + k−1,
    (Σ_i r_i X^(−ik))·T    has  Σ_i Y[i, j] r_i  as coefficient k−1−j,

so that one transform of each tile, made once, serves both. Tiles hold the W bits of Y as whole
numbers, and A encrypts round(q·v/2^W), so that q stands for full circle. B adds up over tiles, adds
an encryption of zero, and sends of c0 only the wanted coefficients, with its noise, and c1, both
rounded to what the noise leaves of them.

With N = 4, k = 2 and the tile ((1, 2), (3, 4)): T = 2 + X + 4X² + 3X³. For v = (5, 6),
(5 + 6X)·T = −8 + 17X + 26X² + 39X³ by X⁴ = −1, and 17 and 39 are 1·5 + 2·6 and 3·5 + 4·6.

Proof sketch. B receives RLWE ciphertexts under A's key. A receives c1, uniform to A as in
`shared_cosines`, and wanted coefficients of a phase with B's noise. Whatever A sent, that phase is
a linear function of Y, plus u·(b + a·s) and e·s with B's fresh u and e. These are 2^-30 of the
noise or less, since A has proven that b is a public key (`ciphertext_link`). So A learns linear
functions of Y, as many and of as many bits as are counted (`hidden.openings`): noise leaves no word
more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.ring.ring_matrix import KINDS
from vertikal.secure.hidden.opening_noise import OpeningNoise
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.two_party.ciphertext_link import CiphertextLink
from vertikal.secure.two_party.lattice.parameters import PRODUCTS
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.wire_words import pack, unpack, wire_bytes
from vertikal.secure.two_party.word_lengths import WordLengths

Array = npt.NDArray[Any]

MOST_TOLD = 512
"""Most coefficients of one ciphertext that an answer tells."""


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
        self._mesh, self._roles, self._lengths = mesh, roles, WordLengths(rows)
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
        words >>= np.uint64(self._lengths.unit)
        residues = ring.reduce(np.broadcast_to(words, (len(ring.primes), *words.shape)))
        self._matrix[:, number] = ring.values(residues)
        self._waiting[:] = 0

    def ask(self, kind: str, vectors: Array, bits: int) -> Array:
        """A: compute (G + Y) v, or the transpose, for the columns v of ``vectors``, uint32.

        ``bits`` of full scale are what B's noise will leave.
        """
        ring, lengths, outputs = self._ring, self._lengths, vectors.shape[1]
        asked, told = self._counts(kind)
        for one in self._written(kind, vectors):
            scaled = ring.scaled(one & np.uint32((1 << lengths.shared) - 1), lengths.shared)
            self._link.send_encrypted(kind, scaled, lengths.asked(bits, asked))
        result = KINDS[kind](self._own, vectors)  # while B works
        length, sent = len(result), lengths.answered(bits)
        packed = self._mesh.recv_array(
            self._roles.helper,
            self._link.tag(f"{kind}/answer"),
            np.uint8,
            (wire_bytes(length * outputs, sent),),
        )
        result += unpack(packed, (length, outputs), sent) << np.uint32(32 - sent)
        for output in range(outputs):
            hidden = self._link.receive_hidden(f"{kind}/answer/hidden", told, sent)
            wanted = np.stack([self._wanted(kind, one, length) for one in hidden])
            result[:, output] += ring.fractions(wanted[:, None], 32)[0].astype(np.uint32)
        return result

    def answer(self, kind: str, outputs: int, bits: int) -> None:
        """B: answer one product of ``outputs`` vectors, so that ``bits`` of full scale remain."""
        ring, lengths = self._ring, self._lengths
        asked, sent = self._counts(kind)[0], lengths.answered(bits)
        length = self._shape[0 if kind == "forward" else 1]
        sums = ring.forward_sums if kind == "forward" else ring.adjoint_sums
        words, hidden = np.empty((length, outputs), np.uint32), []
        for output in range(outputs):
            ciphertexts = self._link.receive_encrypted(kind, asked, lengths.asked(bits, asked))
            totals = sums(self._matrix, np.stack(ciphertexts, axis=1))
            c0, c1 = self._link.hide(totals[:, 0], totals[:, 1])
            wanted = np.stack([self._wanted(kind, one, length) for one in ring.coefficients(c0)])
            words[:, output] = ring.fractions(wanted[:, None], 32)[0].astype(np.uint32)
            hidden.append(c1)
        words += self._noise.draw(words.shape, bits)
        tag = self._link.tag(f"{kind}/answer")
        self._mesh.send(self._roles.label_party, tag, pack(words >> np.uint32(32 - sent), sent))
        for c1 in hidden:
            self._link.send_hidden(f"{kind}/answer/hidden", c1, sent)

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
