"""Hidden phases, step 3: products of a matrix that A and H share with a vector of A's.

A holds K, H holds M, both (rows, D); A is to learn (K + M) v for its vectors v, H nothing, and A
nothing else of M.

Once: H and T expand a mask matrix Y from their seed; H sends M − Y to A, which keeps only the sum
G = K + (M − Y), the matrix under a mask. H keeps only Y.
Per product: A and T expand masks x and u from their seed. A sends e = v − x to H, T sends
z = Y x − u, and H answers Y e + z, which is Y v − u. A adds G v + u:

    Y e + z + G v + u  =  Y v − Y x + Y x − u + (K + M − Y) v + u  =  (K + M) v.

The transpose is the same with Gᵀ and Yᵀ. Each role reads one matrix, and a product moves one number
per row and per direction each way. In Z_10, with K = 1, M = 7, Y = 4, v = 3, x = 9, u = 2: A gets
M − Y = 3 and keeps G = 4; e = 4; z = 36 − 2 = 4; the answer is 16 + 4 = 0, and 0 + 12 + 2 = 4 is
(1 + 7)·3.

H adds noise to its answer, uniform and so small that as many bits of the ring's full scale remain
as were agreed for this kind of product: whatever v is, its entries say no more than that about M.

Proof sketch. H receives e and z: uniform, since x is unknown to H, and u is. T receives nothing. A
receives M − Y, uniform since Y is unknown to A, and the answer, which is (K + M) v − G v − u with
the noise, and so a function of the noisy product and of what A has: A's view is simulated from
that. Masks are seeds handed out once. T with H have x and so v; T with A have Y and so M: these
must not collude.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.ring.ring_matrix import Matrices, Part, RingMatrix
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.opening_noise import OpeningNoise
from vertikal.secure.hidden.padded_link import PaddedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.hidden.row_block import RowBlock
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.seeds import SeedSequence

Array: TypeAlias = npt.NDArray[Any]

AHEAD = 8
"""Products of the whole matrix that T deals for at a time: it reads its matrix once for all."""


class PrivateProduct:
    """One role's part in all products with one matrix; all blocks of rows are added first.

    ``opened_bits`` are the bits of full scale that A learns of each kind of product.
    """

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        roles: Roles,
        dealing: Dealing,
        shape: tuple[int, int],
        dtype: npt.DTypeLike,
        opened_bits: Mapping[str, int],
        matrices: Matrices = RingMatrix,
    ) -> None:
        self._bits = dict(opened_bits)
        self._me, self._mesh, self._keys = mesh.me, mesh, keys
        self._dtype = np.dtype(dtype)
        self._dealing = dealing
        self._noise = OpeningNoise(self._dtype)
        self._vectors: dict[tuple[str, ...], SeedSequence] = {}
        self._ahead: dict[tuple[str, ...], deque[Array]] = {}
        # At A the masked matrix G, at H and T the mask Y.
        self._matrix = matrices(shape, dtype)
        label_party, helper, dealer = roles.names

        def vector_seeds(key: tuple[str, ...]) -> SeedSequence:
            # Each kind and number of vectors has seeds of its own, so that T may run ahead.
            what = "/".join(("vectors", *key))
            return dealing.seeds(what, label_party if mesh.me == dealer else None)

        self._vector_seeds = vector_seeds
        if mesh.me == label_party:
            self._to_helper = PaddedLink(mesh, keys, helper, roles, "product")
        elif mesh.me == helper:
            self._to_label_party = PaddedLink(mesh, keys, label_party, roles, "product")

    @property
    def nbytes(self) -> int:
        return self._matrix.nbytes

    def add_as_label_party(self, block: RowBlock, own: Array) -> None:
        """A: add some rows of K, and keep their masked sum."""
        link = PaddedLink(self._mesh, self._keys, block.roles.helper, block.roles, "product")
        with self._matrix.writing(block.rows) as here:
            link.recv("difference", self._dtype, own.shape, out=here)
            np.add(here, own, out=here)

    def add_as_helper(self, block: RowBlock, own: Array) -> None:
        """H: add some rows of M, overwritten; their difference to the mask goes to A."""
        assert block.dealing is not None
        with self._matrix.writing(block.rows) as here:
            block.dealing.seeds("matrix").fill(here)
            own -= here
        link = PaddedLink(self._mesh, self._keys, block.roles.label_party, block.roles, "product")
        link.send("difference", own)

    def add_as_dealer(self, block: RowBlock) -> None:
        """T: expand some rows of Y."""
        assert block.dealing is not None
        with self._matrix.writing(block.rows) as here:
            block.dealing.seeds("matrix", block.roles.helper).fill(here)

    def ask(self, kind: str, vectors: Array, part: Part) -> Array:
        """A: compute (K + M) v, or the transpose, for the columns v of ``vectors``."""
        seeds = self._seeds_of(_key(kind, vectors.shape[1], part))
        masks = seeds.take(vectors.shape, self._dtype)  # x
        self._to_helper.send("masked", vectors - masks)  # e
        result = self._matrix.product(kind, vectors, part)  # while H and T work
        result += seeds.take(result.shape, self._dtype)  # u
        result += self._to_helper.recv("answer", self._dtype, result.shape)
        return result

    def answer(self, kind: str, columns: int, part: Part) -> None:
        """H: answer one product of ``columns`` vectors."""
        size, length = self._matrix.sizes(kind, part)
        masked = self._to_label_party.recv("masked", self._dtype, (size, columns))
        result = self._matrix.product(kind, masked, part)
        result += self._dealing.recv("dealt", self._dtype, (length, columns))
        result += self._noise.draw(result.shape, self._bits[kind])
        self._to_label_party.send("answer", result)

    def deal(self, kind: str, columns: int, part: Part) -> None:
        """T: send the correlation of one product of ``columns`` vectors."""
        key = _key(kind, columns, part)
        # The first product is dealt for alone: there may be no second.
        count = AHEAD if part is None and key in self._ahead else 1
        ahead = self._ahead.setdefault(key, deque())
        if not ahead:
            seeds = self._seeds_of(key)
            size, length = self._matrix.sizes(kind, part)
            drawn = [
                (
                    seeds.take((size, columns), self._dtype),  # x
                    seeds.take((length, columns), self._dtype),  # u
                )
                for _ in range(count)
            ]
            masks = np.concatenate([x for x, _ in drawn], axis=1)
            products = self._matrix.product(kind, masks, part)
            for i, (_, u) in enumerate(drawn):
                ahead.append(products[:, i * columns : (i + 1) * columns] - u)  # z
        self._dealing.send("dealt", ahead.popleft())

    def _seeds_of(self, key: tuple[str, ...]) -> SeedSequence:
        if key not in self._vectors:
            self._vectors[key] = self._vector_seeds(key)
        return self._vectors[key]


def _key(kind: str, columns: int, part: Part) -> tuple[str, ...]:
    return kind, "all" if part is None else "some", str(columns)
