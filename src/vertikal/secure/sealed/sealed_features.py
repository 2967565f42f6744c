"""Hidden phases, sealed: features, vectors and products that A and H only ever share.

All rows are added first, block by block. Then the three roles run the same program on their shares,
line by line: `forward`, `adjoint`, `drop` and `scale` take a share and give one, and what is linear
each role does by itself. The dealer brings and gets zeros. Only `reveal` opens anything, to A.

Nothing is asked for: how many products there are, of which size, is agreed beforehand, and all
roles count. So the messages of a run are the same in number and size whatever the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.errors import SecrecyError
from vertikal.mesh.interface import Mesh
from vertikal.ring.integers import Ring
from vertikal.ring.ring_matrix import Matrices, RingMatrix
from vertikal.secure.hidden.cosine_shares import Booked, CosineShares
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.fixed_point import FixedPointProducts
from vertikal.secure.hidden.padded_link import PaddedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.hidden.row_block import RowBlock
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.prg import fresh_key, uniform_elements
from vertikal.secure.sealed.shared_product import SharedProduct
from vertikal.secure.sealed.shared_scaling import SharedScaling
from vertikal.secure.sealed.shared_truncation import SharedTruncation

Array: TypeAlias = npt.NDArray[Any]

COSINE_BITS = 11
"""Fraction bits of a cosine: finer than 8 bits of phase, and leaving room for sums over rows."""

MATRIX_BITS = 2 * COSINE_BITS
"""Fraction bits of a feature."""

STEPS = (
    "keys",
    "shares",
    "correlation",
    "opening",
    "difference",
    "factors",
    "vectors",
    "masks",
    "predictions",
)
"""The kinds of messages; the ledger says what their readers learn."""


@dataclass(frozen=True)
class SealedBlock:
    """The numbers about one run on which all roles must agree."""

    rows: int
    width: int
    """Directions, each of which is one phase of a row."""
    phase_bits: int
    outputs: int
    """Vectors in each product."""
    forward: int = 0
    adjoint: int = 0
    """Products of each kind."""
    factors: int = 0
    """Columns of A's own factors; 0 if it has none."""
    reveals: bool = False
    """True if one result is opened to A at the end."""
    revealed_bits: int = 64
    """Lowest bits of the result that are opened; a result must be below 2^(this − 1)."""
    noise_bits: int = 0
    """Lowest bits of them that are noise of the helper's."""
    pairs: bool = False
    """True if the features of a row are the cosines of all its phases, and then their sines."""

    @property
    def features(self) -> int:
        """Columns of the matrix C of features."""
        return 2 * self.width if self.pairs else self.width


class SealedFeatures:
    """One party's part; parties without a role only add their phases."""

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        roles: Roles,
        dealing: Dealing | None,
        agreed: SealedBlock,
        booked: Booked,
        matrices: Matrices = RingMatrix,
    ) -> None:
        self.agreed, self._roles, self._booked, self._me = agreed, roles, booked, mesh.me
        self._mesh, self._keys, self._dealing = mesh, keys, dealing
        self._fixed = FixedPointProducts(Ring(64), COSINE_BITS)
        self._sealed = not agreed.reveals
        if dealing is not None:
            self._product = SharedProduct(
                mesh,
                keys,
                roles,
                dealing,
                (agreed.rows, agreed.features),
                {"forward": agreed.forward, "adjoint": agreed.adjoint},
                agreed.outputs,
                matrices,
            )
            self._truncation = SharedTruncation(mesh, keys, roles, dealing)
            if agreed.factors:
                shape = (agreed.rows, agreed.factors)
                self._scaling = SharedScaling(mesh, keys, roles, dealing, shape)
            if not self.is_dealer:
                peer = roles.helper if self.is_label_party else roles.label_party
                self._opening = PaddedLink(mesh, keys, peer, roles, "reveal")

    @property
    def has_role(self) -> bool:
        return self._me in self._roles.names

    @property
    def is_label_party(self) -> bool:
        """True at the label party, which brings what only it knows."""
        return self._me == self._roles.label_party

    @property
    def is_dealer(self) -> bool:
        return self._me == self._roles.dealer

    @property
    def is_helper(self) -> bool:
        return self._me == self._roles.helper

    @property
    def nbytes(self) -> int:
        """Bytes that this role keeps."""
        return self._product.nbytes if self.has_role else 0

    @property
    def at_a_time(self) -> bool:
        """True if several blocks of rows may be added at the same time."""
        return self._dealing is None or not self._dealing.prepared

    def add(self, rows: slice, phases: Array) -> None:
        """Every party: one block of rows, with its own phases, which are overwritten."""
        block = RowBlock.of(rows, self._roles, self._dealing)
        cosines = CosineShares(
            self._mesh,
            self._keys,
            block,
            self.agreed.phase_bits,
            self._fixed,
            self._booked,
            pairs=self.agreed.pairs,
        )
        share = cosines.add(phases)
        if self.has_role:
            with self._booked("difference"):
                self._product.add(block, share)

    def forward(self, share: Array) -> Array:
        """Shares of C v (rows, outputs) from shares of v (features, outputs)."""
        with self._booked(self._sends):
            return self._product.multiply("forward", share)

    def adjoint(self, share: Array) -> Array:
        """Shares of Cᵀ v (features, outputs) from shares of v (rows, outputs)."""
        with self._booked(self._sends):
            return self._product.multiply("adjoint", share)

    def drop(self, share: Array, bits: int) -> Array:
        """Shares of x / 2^bits, rounded up or down, from shares of x."""
        with self._booked(self._sends):
            return self._truncation.drop(share, bits)

    def hold(self, factors: Array | None) -> None:
        """A: the factors (rows, k) of `scale`, which only it knows; None elsewhere."""
        with self._booked("factors"):
            self._scaling.hold(factors)

    def scale(self, share: Array) -> Array:
        """Shares of A's factors times x (rows, k), entry by entry, from shares of x."""
        with self._booked(self._sends):
            return self._scaling.scale(share)

    def reveal(self, share: Array) -> Array | None:
        """Open x to A, once, where that was agreed; None at the others.

        H adds noise, uniform in ±2^(noise_bits − 1), and sends its share mod 2^revealed_bits. So
        whatever A has added to its own shares on the way, it learns a number of
        revealed_bits − noise_bits bits. With 8 bits of which 2 are noise, shares 250 and 16 of 10
        and noise 1: H sends 17, A has 250 + 17 = 11 mod 256.
        """
        if self._sealed:
            raise SecrecyError(
                f"{self._me}: no opening, or no second one, was agreed; nothing was sent"
            )
        self._sealed = True
        if self.is_helper:
            with self._booked("predictions"):
                self._opening.send("reveal", (share + self._noise(share.shape)) & self._revealed)
        if not self.is_label_party:
            return None
        opened = self._opening.recv("reveal", np.uint64, share.shape)
        opened += share
        # Of the lowest bits the highest is the sign.
        unused = np.uint64(64 - self.agreed.revealed_bits)
        signed = (opened << unused).view(np.int64) >> np.int64(unused)
        return np.asarray(signed.view(np.uint64))

    @property
    def _revealed(self) -> np.uint64:
        return np.uint64(2**self.agreed.revealed_bits - 1)

    def _noise(self, shape: tuple[int, ...]) -> Array:
        """H: draw noise that nobody else knows; zeros where none was agreed."""
        bits = self.agreed.noise_bits
        if not bits:
            return np.zeros(shape, np.uint64)
        noise = uniform_elements(fresh_key(), shape, np.uint64, stream=0)
        noise &= np.uint64(2**bits - 1)
        noise -= np.uint64(2 ** (bits - 1))
        return noise

    @property
    def _sends(self) -> str:
        return "masks" if self.is_dealer else "vectors"
