"""One party's end of the link on which ciphertexts travel, for one set of parameters.

Of a fresh ciphertext only c0 is sent: both ends grow c1 from the next seed of their pair. The label
party therefore cannot choose a c1, a ciphertext serves the one question that it was made for, and
one of another run or job is noise.

Polynomials travel by coefficients x, each as a word round(2^bits·x/q) of as many bits as its reader
needs. Rounding is done to what is there for anybody to see, so that it takes nothing away from what
hides a message; and whatever word arrives is some coefficient, so that there is none to refuse.
Only the public key, on which B puts numbers of its own, travels by its exact residues.
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
from vertikal.secure.two_party.parameters import PRIME_BITS
from vertikal.secure.two_party.polynomials import PolynomialRing
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.secret_key import SecretKey
from vertikal.secure.two_party.small_numbers import SmallNumbers
from vertikal.secure.two_party.wire_words import pack, unpack, wire_bytes

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
            mesh.send(self.peer, self.tag("key"), pack(self._key.public_key(self._a), PRIME_BITS))
        else:
            self._numbers = SmallNumbers()
            self._b = ring.values(self._receive_key())

    def send_encrypted(self, step: str, messages: Array, bits: int) -> None:
        """A: encrypt polynomials, given by residues of their coefficients, and send them."""
        c1 = self._uniform(messages.shape[1])
        self._send(step, self._key.encrypt(c1, messages), bits)

    def receive_encrypted(self, step: str, count: int, bits: int) -> tuple[Array, Array]:
        """B: receive ciphertexts (c0, c1), as values."""
        c0 = self._receive(step, count, bits)
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

    def send_hidden(self, step: str, c1: Array, bits: int) -> None:
        """B: send c1 (values) of answers that `hide` returned."""
        self._send(step, self._ring.coefficients(c1), bits)

    def receive_hidden(self, step: str, count: int, bits: int) -> Array:
        """A: receive c1 of so many answers, and multiply it by the key: c1·s by coefficients."""
        return self._key.times(self._receive(step, count, bits))

    def _send(self, step: str, coefficients: Array, bits: int) -> None:
        words = self._ring.fractions(coefficients, bits)
        self._mesh.send(self.peer, self.tag(step), pack(words, bits))

    def _receive(self, step: str, count: int, bits: int) -> Array:
        """Receive so many polynomials, as values."""
        shape = (count, self._ring.degree)
        size = wire_bytes(math.prod(shape), bits)
        packed = self._mesh.recv_array(self.peer, self.tag(step), np.uint8, (size,))
        return self._ring.values(self._ring.scaled(unpack(packed, shape, bits), bits))

    def _receive_key(self) -> Array:
        """Receive residues of one polynomial, and refuse what is not below the primes."""
        ring, tag = self._ring, self.tag("key")
        shape = (len(ring.primes), 1, ring.degree)
        size = wire_bytes(math.prod(shape), PRIME_BITS)
        packed = self._mesh.recv_array(self.peer, tag, np.uint8, (size,))
        residues = unpack(packed, shape, PRIME_BITS)
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
