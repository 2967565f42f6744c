"""Hidden features of two parties without a dealer: one party's part, with all steps together.

First all rows are added, block by block (`shared_cosines`). Then the label party asks for products
(`encrypted_product`) and the helper answers, until it is told that there are no more. The interface
is that of `hidden.hidden_features.HiddenFeatures`, but for products of some rows or columns: those
would be encrypted as well, and the helper could not see what it opens.
"""

from __future__ import annotations

from collections import deque
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError, MeshError
from vertikal.mesh.interface import Mesh
from vertikal.records import convert
from vertikal.ring.ring_matrix import KINDS
from vertikal.secure.hidden.cosine_shares import PHASE_BITS, Booked
from vertikal.secure.hidden.hidden_features import HiddenBlock
from vertikal.secure.hidden.openings import Openings, Tally
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.two_party.encrypted_product import EncryptedProduct
from vertikal.secure.two_party.lattice.parameters import MOST_ANSWERS
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.shared_cosines import SharedCosines
from vertikal.secure.two_party.vector_writing import LARGEST, MOST_BITS, VectorWriting
from vertikal.secure.two_party.word_lengths import WordLengths, blocks_of

Array: TypeAlias = npt.NDArray[Any]

STEPS = ("key", "cosines", "hidden", "requests", "questions", "answers")
"""The kinds of messages, each sent by one role; the ledger says what its reader learns."""

_AHEAD = 2
"""Blocks of rows that the label party encrypts before it waits for the helper's answer."""


class TwoPartyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for one product, from A to B; without ``kind`` there are no more."""

    kind: str = ""
    outputs: int = 0


class TwoPartyFeatures:
    """One party's part in one block; what it may call depends on its role."""

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        roles: TwoRoles,
        agreed: HiddenBlock,
        booked: Booked,
        tally: Tally | None = None,
    ) -> None:
        if agreed.phase_bits not in PHASE_BITS:
            raise InputError.of("phase_bits", "8 or 16", agreed.phase_bits)
        for kind, bits in agreed.opened_bits.items():
            if bits > MOST_BITS:
                raise InputError.of(f"bits of {kind} products", f"at most {MOST_BITS}", bits)
        if agreed.rows * blocks_of(agreed.width) > MOST_ANSWERS:
            most = MOST_ANSWERS // blocks_of(agreed.width)
            raise InputError.of(
                "rows", f"at most {most} of {agreed.width} directions without a dealer", agreed.rows
            )
        self.agreed, self.roles = agreed, roles
        self._mesh, self._booked = mesh, booked
        lengths = WordLengths(agreed.rows)
        self._writing = VectorWriting(lengths.matrix_bits)
        self._tag = roles.tag("request")
        self._sent: deque[int] = deque()
        counted = tally if mesh.me == roles.helper else None
        self._openings = Openings(
            mesh.me, roles.label_party, agreed.rows, agreed.limits, counted, agreed.width
        )
        with booked("key"):
            self._cosines = SharedCosines(
                mesh, keys, roles, agreed.width, agreed.phase_bits, lengths, pairs=agreed.pairs
            )
            self._product = EncryptedProduct(mesh, keys, roles, agreed.rows, self._cosines.columns)

    @property
    def nbytes(self) -> int:
        """Bytes that this party keeps."""
        return self._product.nbytes

    @property
    def opened(self) -> int:
        """B: forward products of the row that took part in most of them."""
        return self._openings.forward

    @property
    def at_a_time(self) -> bool:
        """False: each block of rows is added after the one before."""
        return False

    def add(self, rows: slice, phases: Array) -> None:
        """Both: the next block of ``rows``, with the party's own phases."""
        if self._mesh.me == self.roles.helper:
            with self._booked("hidden"):
                self._product.add_as_helper(self._cosines.answer(phases))
            return
        with self._booked("cosines"):
            self._cosines.send(phases)
        self._sent.append(len(phases))
        self._receive(_AHEAD)

    def product(
        self, kind: str, vectors: Array, rows: Array | None = None, columns: slice = slice(None)
    ) -> Array:
        """A: "forward" C @ vectors, or "adjoint" C.T @ vectors, always of all rows and columns."""
        if rows is not None or columns != slice(None):
            raise InputError.of("rows and columns", "all of them without a dealer", "some")
        self._receive(0)
        agreed, bits = self.agreed, self.agreed.opened_bits[kind]
        vectors = np.asarray(vectors, np.float64)
        norms = np.abs(vectors).sum(axis=0)
        if kind == "adjoint":
            norms = norms * LARGEST[agreed.pairs]
        elif agreed.pairs:
            norms = np.hypot(*np.split(vectors, 2)).sum(axis=0)
        kept = self._cosines.kept_from_features(vectors) if kind == "forward" else vectors
        words, units = self._writing.words(kept, norms, 2.0**-bits)
        self._announce(TwoPartyRequest(kind, vectors.shape[1]))
        with self._booked("questions"):
            found = self._writing.numbers(self._product.ask(kind, words, bits), units)
        return self._cosines.features_from_kept(found) if kind == "adjoint" else found

    def finish(self) -> None:
        """A: tell the helper that no product will follow."""
        self._announce(TwoPartyRequest())

    def serve(self) -> None:
        """B: answer products until the label party says that there are no more."""
        while (request := self._requested()).kind:
            self._openings.book(request.kind, request.outputs, (0, self.agreed.features), None)
            with self._booked("answers"):
                bits = self.agreed.opened_bits[request.kind]
                self._product.answer(request.kind, request.outputs, bits)

    def _receive(self, left: int) -> None:
        """A: take in answers until so many blocks are on the way."""
        while len(self._sent) > left:
            self._product.add_as_label_party(self._cosines.receive(self._sent.popleft()))

    def _announce(self, request: TwoPartyRequest) -> None:
        with self._booked("requests"):
            self._mesh.send(self.roles.helper, self._tag, msgspec.structs.asdict(request))

    def _requested(self) -> TwoPartyRequest:
        me, label_party = self._mesh.me, self.roles.label_party
        message: Any = self._mesh.recv(label_party, self._tag)
        try:
            request = convert(message, TwoPartyRequest)
        except msgspec.ValidationError as error:
            raise MeshError(f"{me}: {label_party} asked for a product wrongly: {error}") from None
        if request.kind and (request.kind not in KINDS or request.outputs < 1):
            raise MeshError(
                f"{me}: {label_party} asked for a product that does not exist: {request}"
            )
        return request
