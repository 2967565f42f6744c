"""One party's end of the link on which ciphertexts travel, for one set of parameters.

Of a fresh ciphertext only c0 is sent: both ends grow c1 from the next seed of their pair. The label
party therefore cannot choose a c1, a ciphertext serves the one question that it was made for, and
one of another run or job is noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import MeshError
from vertikal.mesh.interface import Mesh
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.seeds import SeedSequence
from vertikal.secure.two_party.polynomials import WIRE_BYTES, PolynomialRing, pack, unpack
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.secret_key import SecretKey
from vertikal.secure.two_party.small_numbers import SmallNumbers

Array = npt.NDArray[Any]


class CiphertextLink:
    """Ciphertexts of polynomials (primes, count, N) between the two parties.

    It begins with the label party's public key, which is sent when the object is made.
    """

    def __init__(
        self, mesh: Mesh, keys: PairKeys, roles: TwoRoles, ring: PolynomialRing, what: str
    ) -> None:
        self.me, self.peer = mesh.me, roles.peer(mesh.me)
        self._mesh, self._ring, self._roles, self._what = mesh, ring, roles, what
        self._seeds = SeedSequence(keys, self.peer, what, *roles.purpose)
        self._a = self._uniform(1)
        if mesh.me == roles.label_party:
            self._key = SecretKey(ring)
            self.send("key", self._key.public_key(self._a))
        else:
            self._numbers = SmallNumbers()
            self._b = self.receive("key", 1)

    def send_encrypted(self, step: str, messages: Array) -> None:
        """A: encrypt polynomials, given by residues of their coefficients, and send them."""
        c1 = self._uniform(messages.shape[1])
        self.send(step, self._key.encrypt(c1, messages))

    def receive_encrypted(self, step: str, count: int) -> tuple[Array, Array]:
        """B: receive ciphertexts (c0, c1), as values."""
        c0 = self.receive(step, count)
        return c0, self._uniform(count)

    def hide(self, c0: Array, c1: Array) -> tuple[Array, Array]:
        """B: add fresh encryptions of zero, so that c1 looks uniform; values in and out.

        No error is added to c0, on which the caller puts a mask or noise that is larger.
        """
        ring, shape = self._ring, (c0.shape[1], self._ring.degree)
        u = ring.values(ring.lift(self._numbers.ternary(shape)))
        errors = ring.values(ring.lift(self._numbers.errors(shape)))
        return (
            ring.multiply_add(u, self._b, c0),
            ring.multiply_add(u, self._a, ring.add(c1, errors)),
        )

    def times_key(self, c1: Array) -> Array:
        """A: multiply by the secret key; values in, coefficients out."""
        return self._key.times(c1)

    def send(self, step: str, residues: Array) -> None:
        """Send residues, three bytes each."""
        self._mesh.send(self.peer, self.tag(step), pack(residues))

    def receive(self, step: str, count: int) -> Array:
        """Receive residues of so many polynomials, and refuse what is not below the primes."""
        ring, tag = self._ring, self.tag(step)
        shape = (len(ring.primes), count, ring.degree)
        size = WIRE_BYTES * math.prod(shape)
        residues = unpack(self._mesh.recv_array(self.peer, tag, np.uint8, (size,)), shape)
        if not ring.all_below(residues):
            raise MeshError(
                f"{self.me}: {self.peer} sent numbers under {tag!r} that are no residues; "
                "nothing was computed with them"
            )
        return residues

    def tag(self, step: str) -> str:
        return self._roles.tag(f"{self._what}/{step}")

    def _uniform(self, count: int) -> Array:
        ring = self._ring
        return ring.reduce(self._seeds.take((len(ring.primes), count, ring.degree), np.uint64))
