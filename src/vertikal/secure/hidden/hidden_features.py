"""Hidden phases, all steps together: one role's part in the features of one label party's block.

First all rows are added, block by block (steps 1 and 2: `phase_shares`, `trigonometric`; and the
masked half of step 3, `private_product`). Then the label party asks for products, and helper and
dealer serve until it says that there are no more. What remains of the cosines is C − Y at the label
party, under a mask Y that helper and dealer know; neither of the two says anything by itself.

The helper counts the bits that it opens (`openings`): too many products, or one about too few rows,
would hand over features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.errors import MeshError
from vertikal.mesh.interface import Mesh
from vertikal.records import convert
from vertikal.ring.integers import Ring
from vertikal.ring.ring_matrix import KINDS, Matrices, Part, RingMatrix
from vertikal.secure.hidden.cosine_shares import Booked, CosineShares
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.fixed_point import FixedPointProducts
from vertikal.secure.hidden.openings import Limits, Openings, Tally
from vertikal.secure.hidden.private_product import PrivateProduct
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.hidden.row_block import RowBlock
from vertikal.secure.keys.agreement import PairKeys

Array: TypeAlias = npt.NDArray[Any]

STEPS = (
    "keys",
    "shares",
    "correlation",
    "opening",
    "difference",
    "requests",
    "questions",
    "masks",
    "answers",
)
"""The kinds of messages, each sent by one role; the ledger says what its reader learns."""


@dataclass(frozen=True)
class HiddenBlock:
    """The numbers about one block on which all roles must agree."""

    rows: int
    width: int
    """Directions, each of which is one phase of a row."""
    phase_bits: int
    product_bits: int
    limits: Limits
    pairs: bool = False
    """True if the features of a row are the cosines of all its phases, and then their sines."""

    @property
    def features(self) -> int:
        """Columns of the matrix of features."""
        return 2 * self.width if self.pairs else self.width

    @property
    def opened_bits(self) -> dict[str, int]:
        """Bits of full scale that each kind of product opens."""
        return {"forward": self.limits.value_bits, "adjoint": self.limits.gradient_bits}


class ProductRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for one product, from A to H and T; without ``kind`` there are no more."""

    kind: str = ""
    outputs: int = 0
    first: int = 0
    last: int = 0
    some: int = 0
    """Count of the row numbers that follow; 0 for all rows."""


class HiddenFeatures:
    """One party's part in one block; what it may call depends on its role."""

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        roles: Roles,
        dealing: Dealing | None,
        agreed: HiddenBlock,
        booked: Booked,
        tally: Tally | None = None,
        matrices: Matrices = RingMatrix,
    ) -> None:
        self.agreed = agreed
        self.roles = roles
        self._mesh, self._keys, self._dealing, self._booked = mesh, keys, dealing, booked
        self._fixed = FixedPointProducts(Ring(agreed.product_bits))
        self._tag = f"hidden/{roles.label_party}/{roles.session}/request"
        counted = tally if mesh.me == roles.helper else None
        self._openings = Openings(
            mesh.me, roles.label_party, agreed.rows, agreed.limits, counted, agreed.width
        )
        if dealing is not None:
            shape = (agreed.rows, agreed.features)
            self._product = PrivateProduct(
                mesh,
                keys,
                roles,
                dealing,
                shape,
                self._fixed.ring.dtype,
                agreed.opened_bits,
                matrices,
            )

    @property
    def nbytes(self) -> int:
        """Bytes that this role keeps."""
        return self._product.nbytes if self._mesh.me in self.roles.names else 0

    @property
    def opened(self) -> int:
        """H: forward products of the row that took part in most of them."""
        return self._openings.forward

    @property
    def at_a_time(self) -> bool:
        """True if several blocks of rows may be added at the same time."""
        return self._dealing is None or not self._dealing.prepared

    def add(self, rows: slice, phases: Array) -> None:
        """Every party: one block of rows, with its own phases, which are overwritten."""
        block = RowBlock.of(rows, self.roles, self._dealing)
        cosines = CosineShares(
            self._mesh,
            self._keys,
            block,
            self.agreed.phase_bits,
            self._fixed,
            self._booked,
            pairs=self.agreed.pairs,
        ).add(phases)
        if self._mesh.me == self.roles.dealer:
            self._product.add_as_dealer(block)
        elif cosines is not None and self._mesh.me == self.roles.label_party:
            self._product.add_as_label_party(block, cosines)
        elif cosines is not None:
            with self._booked("difference"):
                self._product.add_as_helper(block, cosines)

    def product(
        self, kind: str, vectors: Array, rows: Array | None = None, columns: slice = slice(None)
    ) -> Array:
        """A: "forward" C[rows, columns] @ vectors, or "adjoint" C[rows, columns].T @ vectors."""
        span = range(self.agreed.features)[columns]
        request = ProductRequest(
            kind, vectors.shape[1], span.start, span.stop, 0 if rows is None else len(rows)
        )
        part = self._part(request, rows)
        what = {"forward": "coefficients", "adjoint": "residuals"}[kind]
        noise = 2.0 ** -self.agreed.opened_bits[kind]
        elements, fractions = self._fixed.encode(vectors, what, noise)
        self._announce(request, rows)
        with self._booked("questions"):
            total = self._product.ask(kind, elements, part)
        return self._fixed.decode(total, fractions)

    def finish(self) -> None:
        """A: tell helper and dealer that no product will follow."""
        self._announce(ProductRequest(), None)

    def serve(self) -> None:
        """H and T: take part in products until the label party says that there are no more."""
        while True:
            request, rows = self._requested()
            if not request.kind:
                return
            part = self._part(request, rows)
            if self._mesh.me == self.roles.helper:
                columns = (request.first, request.last)
                self._openings.book(request.kind, request.outputs, columns, rows)
                with self._booked("answers"):
                    self._product.answer(request.kind, request.outputs, part)
            else:
                with self._booked("masks"):
                    self._product.deal(request.kind, request.outputs, part)

    def _announce(self, request: ProductRequest, rows: Array | None) -> None:
        with self._booked("requests"):
            for name in (self.roles.helper, self.roles.dealer):
                self._mesh.send(name, self._tag, msgspec.structs.asdict(request))
                if rows is not None:
                    self._mesh.send(name, f"{self._tag}/rows", np.asarray(rows, np.int64))

    def _requested(self) -> tuple[ProductRequest, Array | None]:
        me, label_party, agreed = self._mesh.me, self.roles.label_party, self.agreed
        message: Any = self._mesh.recv(label_party, self._tag)
        try:
            request = convert(message, ProductRequest)
        except msgspec.ValidationError as error:
            raise MeshError(f"{me}: {label_party} asked for a product wrongly: {error}") from None
        if not request.kind:
            return request, None
        whole = 0 <= request.first < request.last <= agreed.features
        if request.kind not in KINDS or request.outputs < 1 or request.some < 0 or not whole:
            raise MeshError(
                f"{me}: {label_party} asked for a product that does not exist: {request}"
            )
        if not request.some:
            return request, None
        rows = self._mesh.recv_array(label_party, f"{self._tag}/rows", np.int64, (request.some,))
        if rows.min() < 0 or rows.max() >= agreed.rows:
            raise MeshError(
                f"{me}: {label_party} asked for rows beyond the {agreed.rows} there are"
            )
        return request, rows

    def _part(self, request: ProductRequest, rows: Array | None) -> Part:
        columns = slice(request.first, request.last)
        if rows is not None:
            return lambda matrix: matrix[rows, columns]
        if (request.first, request.last) == (0, self.agreed.features):
            return None
        return lambda matrix: matrix[:, columns]
