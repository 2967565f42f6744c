"""One party's end of the link on which ciphertexts travel, for one set of parameters.

Of a fresh ciphertext only c0 is sent: both ends grow c1 from the next seed of their pair. The label
party therefore cannot choose a c1, a ciphertext serves the one question that it was made for, and
one of another run or job is noise.

Polynomials travel by coefficients x, each as a word round(2^bits·x/q) of as many bits as its reader
needs. Rounding is done to what is there for anybody to see, so that it takes nothing away from what
hides a message; and whatever word arrives is some coefficient, so that there is none to refuse.
Only the public key, on which B puts numbers of its own, travels by its exact residues.

B trusts no public key (b, a) before it has been used. With b = 2^20, or a sum of such powers, the
c0 of an answer would show B's secret u digit by digit, and then c1 what it was multiplied by. So B
first encrypts random numbers μ, which fill all but the 13 lowest bits of the modulus or more, and
wants their hash. Who knows it knows an s with u·(b + a·s) + e·s below those bits, and so adds no
more than that to any answer: b is a public key. A in turn tells no hash unless B has sent another
one of the same numbers, or B could have anything decrypted.
"""

from __future__ import annotations

import hashlib
import hmac
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

EXACT_BITS = 55
"""Bits to which a proof of the public key is rounded, the most that there are."""


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
        self._proof_bits = proof_bits(ring.modulus)
        self._a = self._uniform(1)
        if mesh.me == roles.label_party:
            self._key = SecretKey(ring)
            mesh.send(self.peer, self.tag("key"), pack(self._key.public_key(self._a), PRIME_BITS))
            self._answer_proof()
        else:
            self._numbers = SmallNumbers()
            self._b = ring.values(self._receive_key())
            self._prove_key()

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

    def _prove_key(self) -> None:
        """B: encrypt random numbers under A's public key, and go on if A can read them."""
        numbers = self._numbers.words((1, self._ring.degree), np.uint64)
        numbers >>= np.uint64(64 - self._proof_bits)
        encrypted = self._ring.values(self._ring.scaled(numbers, self._proof_bits))
        c0, c1 = self.hide(encrypted, np.zeros_like(encrypted))
        asked, answer = _hashes(numbers)
        self._mesh.send(self.peer, self.tag("key/proof"), asked)
        self._send("key/proof/c0", self._ring.coefficients(c0), EXACT_BITS)
        self.send_hidden("key/proof/c1", c1, EXACT_BITS)
        found = self._mesh.recv_array(
            self.peer, self.tag("key/proof/answer"), np.uint8, answer.shape
        )
        if not hmac.compare_digest(found.tobytes(), answer.tobytes()):
            raise MeshError(
                f"{self.me}: {self.peer} cannot read what was encrypted under its public key; "
                "nothing was computed with it"
            )

    def _answer_proof(self) -> None:
        """A: show that what is encrypted under the public key can be read, if B knows it too."""
        tag = self.tag("key/proof")
        asked = self._mesh.recv_array(self.peer, tag, np.uint8, (hashlib.sha256().digest_size,))
        c0 = self._ring.coefficients(self._receive("key/proof/c0", 1, EXACT_BITS))
        phase = self._ring.add(c0, self.receive_hidden("key/proof/c1", 1, EXACT_BITS))
        expected, answer = _hashes(self._ring.fractions(phase, self._proof_bits))
        if not hmac.compare_digest(asked.tobytes(), expected.tobytes()):
            raise MeshError(
                f"{self.me}: {self.peer} sent under {tag!r} what it did not encrypt under the "
                "public key; nothing was told of it"
            )
        self._mesh.send(self.peer, self.tag("key/proof/answer"), answer)

    def tag(self, step: str) -> str:
        return self._roles.tag(f"{self._what}/{step}")

    def _uniform(self, count: int) -> Array:
        ring = self._ring
        return ring.reduce(self._seeds.take((len(ring.primes), count, ring.degree), np.uint64))


def proof_bits(modulus: int) -> int:
    """Bits of the random numbers that prove a public key.

    13 less than the modulus has, or as many as rounding to `EXACT_BITS` leaves exact.
    """
    return min(modulus.bit_length() - 13, EXACT_BITS - 10)


def _hashes(numbers: Array) -> tuple[Array, Array]:
    """Two hashes of these numbers, of which neither tells the other."""
    text = numbers.astype("<u8").tobytes()
    first, second = (hashlib.sha256(label + text).digest() for label in (b"asked", b"answer"))
    return np.frombuffer(first, np.uint8), np.frombuffer(second, np.uint8)
