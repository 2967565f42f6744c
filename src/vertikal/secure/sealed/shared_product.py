"""Sealed, step 3: products of a matrix that A and H share with vectors that they share, too.

The matrix is C = C_A + C_H (rows, D), a vector v = v_A + v_H; A and H are to have shares of C v, or
of its transpose, and nobody is to learn anything.

Once: A and T expand a mask Y_A from their seed, H and T expand Y_H; with Y = Y_A + Y_H, A and H
tell each other C_A − Y_A and C_H − Y_H, and both have G = C − Y.
Per product: A and T expand x_A and z_A, H and T expand x_H; T sends z_H = Y (x_A + x_H) − z_A to H.
A and H tell each other v_A − x_A and v_H − x_H, and both have e = v − x. Then

    A keeps (G + Y_A) e + G x_A + z_A,    H keeps Y_H e + G x_H + z_H,

and these add up to (G + Y) e + G x + Y x = C e + C x = C v. The products with x need no message, so
they are made for several vectors at once, by one reading of the matrix; the number of products is
agreed beforehand.

In Z_10 with C = 7, v = 3, Y = 2 + 5, x = 1 + 8, and shares v = 4 + 9: G = 0; the messages are
4 − 1 = 3 and 9 − 8 = 1, e = 4; Y x = 63, z = 6 + 7. A keeps 2·4 + 0 + 6 = 4, H keeps
5·4 + 0 + 7 = 7, and 4 + 7 = 1 = 7·3.

Proof sketch. A receives C_H − Y_H and v_H − x_H: uniform, since Y_H and x_H are to A. H receives
C_A − Y_A, v_A − x_A and z_H: uniform, since Y_A, x_A and z_A are to H. T receives nothing. Each
view is simulated by uniform numbers; there is no output. Every mask is used once. T with A, or T
with H, have Y and x and so C and v: these must not collude, nor may A and H, who have the shares.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import SecrecyError
from vertikal.mesh.interface import Mesh
from vertikal.ring.ring_matrix import KINDS, Matrices, RingMatrix
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.padded_link import OpenShares
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.hidden.row_block import RowBlock
from vertikal.secure.keys.agreement import PairKeys

Array = npt.NDArray[Any]

AHEAD = 8
"""Products with masks that are made by one reading of the matrix."""


class SharedProduct:
    """One role's part in all products with one matrix; all blocks of rows are added first.

    ``uses`` is the number of products of each kind, ``columns`` the number of vectors in each.
    """

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        roles: Roles,
        dealing: Dealing,
        shape: tuple[int, int],
        uses: Mapping[str, int],
        columns: int,
        matrices: Matrices = RingMatrix,
    ) -> None:
        self._me, self._roles, self._dealing = mesh.me, roles, dealing
        self._mesh, self._keys = mesh, keys
        self._shape, self._columns = shape, columns
        self._left = dict(uses)
        self._undealt = dict(uses)
        self._ahead: dict[str, deque[tuple[Array, Array]]] = {kind: deque() for kind in KINDS}
        self._deals = mesh.me == roles.dealer
        label_party, helper, _ = roles.names
        if self._deals:
            if not dealing.prepared:
                self._sum = matrices(shape, np.uint64)  # Y
                self._seeds = {
                    (name, what): dealing.seeds(what, name)
                    for name in (label_party, helper)
                    for what in KINDS
                }
                self._dealt = {kind: dealing.seeds(f"dealt {kind}", label_party) for kind in KINDS}
            return
        self._common = matrices(shape, np.uint64)  # G
        self._own = matrices(shape, np.uint64)  # at A: G + Y_A, at H: Y_H
        self._opening = OpenShares(mesh, keys, roles, "product")
        self._vectors = {kind: dealing.seeds(kind) for kind in KINDS}
        if mesh.me == label_party:
            self._dealt = {kind: dealing.seeds(f"dealt {kind}") for kind in KINDS}

    @property
    def nbytes(self) -> int:
        """Bytes that this role keeps."""
        if self._deals:
            return 0 if self._dealing.prepared else self._sum.nbytes
        return self._common.nbytes + self._own.nbytes

    def add(self, block: RowBlock, share: Array | None) -> None:
        """Add some rows of C; A and H bring their shares of them, which are overwritten."""
        rows, dealing = block.rows, block.dealing
        assert dealing is not None
        if share is not None:
            opening = OpenShares(self._mesh, self._keys, block.roles, "product")
            with self._own.writing(rows) as own, self._common.writing(rows) as common:
                dealing.seeds("mask").fill(own)
                share -= own
                opening.sum("difference", share, out=common)
                if self._me == self._roles.label_party:
                    np.add(own, common, out=own)
        elif not dealing.prepared:
            with self._sum.writing(rows) as total:
                dealing.seeds("mask", self._roles.label_party).fill(total)
                other = dealing.seeds("mask", self._roles.helper).take(total.shape, np.uint64)
                np.add(total, other, out=total)

    def multiply(self, kind: str, share: Array) -> Array:
        """A and H: turn shares of vectors (size, columns) into shares of the product.

        T deals for it, and gets zeros.
        """
        if not self._left[kind]:
            raise SecrecyError(
                f"{self._me}: no {kind} product is left of those that were agreed; nothing was sent"
            )
        self._left[kind] -= 1
        if self._deals:
            return self._deal(kind)
        if not self._ahead[kind]:
            self._prepare(kind)
        mask, product = self._ahead[kind].popleft()
        if self._me == self._roles.helper:
            product += self._dealing.recv(f"dealt {kind}", np.uint64, product.shape)
        difference = self._opening.sum(f"masked {kind}", share - mask)  # e
        product += self._own.product(kind, difference)
        return product

    def _prepare(self, kind: str) -> None:
        """A and H: G x, and at A the share z of Y x, for the next few vectors."""
        count = self._batch(kind)
        masks = [self._vectors[kind].take(self._size(kind), np.uint64) for _ in range(count)]
        products = self._common.product(kind, np.concatenate(masks, axis=1))
        for mask, product in zip(masks, np.split(products, count, axis=1), strict=True):
            share = np.ascontiguousarray(product)
            if self._me == self._roles.label_party:
                share += self._dealt[kind].take(share.shape, np.uint64)
            self._ahead[kind].append((mask, share))

    def _deal(self, kind: str) -> Array:
        """T: z for the next product of this kind."""
        step, length = f"dealt {kind}", self._length(kind)
        if self._dealing.prepared:
            self._dealing.pass_on(step, length, np.uint64)
            return np.zeros(length, np.uint64)
        if not self._ahead[kind]:
            count, size = self._batch(kind), self._size(kind)
            label_party, helper, _ = self._roles.names
            masks = [
                self._seeds[label_party, kind].take(size, np.uint64)
                + self._seeds[helper, kind].take(size, np.uint64)
                for _ in range(count)
            ]
            products = self._sum.product(kind, np.concatenate(masks, axis=1))
            for mask, product in zip(masks, np.split(products, count, axis=1), strict=True):
                self._ahead[kind].append(
                    (mask, product - self._dealt[kind].take(length, np.uint64))
                )
        _, dealt = self._ahead[kind].popleft()
        self._dealing.send(step, dealt)
        return np.zeros(length, np.uint64)

    def _batch(self, kind: str) -> int:
        count = min(AHEAD, self._undealt[kind])
        self._undealt[kind] -= count
        return count

    def _size(self, kind: str) -> tuple[int, int]:
        return self._shape[kind == "forward"], self._columns

    def _length(self, kind: str) -> tuple[int, int]:
        return self._shape[kind == "adjoint"], self._columns
