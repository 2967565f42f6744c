"""One party's end of the link on which ciphertexts travel, for one set of parameters.

Of a fresh ciphertext only c0 is sent: both ends grow c1 from the next seed of their pair. The label
party therefore cannot choose a c1, a ciphertext serves the one question that it was made for, and
one of another run or job is noise.

Polynomials travel by coefficients x, each as a word round(2^bits·x/q) of as many bits as its reader
needs. Rounding is done to what is there for anybody to see, so that it takes nothing away from what
hides a message; and whatever word arrives is some coefficient, so that there is none to refuse.
Only public keys, on which B puts numbers of its own, travel by their exact residues.

Where many answers are sent of which B keeps c0, ``gathered`` of them share one c1
(`lattice.key_switching`): A then has as many keys for answers beside the one for questions.

B trusts no public key (b, a) before it has been used. With b = 2^20, or a sum of such powers, the
c0 of an answer would show B's secret u digit by digit, and then c1 what it was multiplied by. So B
first encrypts random numbers μ, which fill all but the 13 lowest bits of the modulus or more, and
wants their hash. Who knows it knows an s with u·(b + a·s) + e·s below those bits, and so adds no
more than that to any answer: b is a public key. Gathered answers are proven the same way: μ is
encrypted for questions, switched as answers are, and read with the keys for answers, so that a
switching key of another form, which would add digits of B's numbers, adds no more either; μ then
leaves the 17 lowest bits free. A in turn tells no hash unless B has sent another one of the same
numbers, or B could have anything decrypted.
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
from vertikal.secure.two_party.lattice.key_switching import DIGITS, SwitchingKey, gadget
from vertikal.secure.two_party.lattice.parameters import PRIME_BITS
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing
from vertikal.secure.two_party.lattice.secret_key import SecretKey
from vertikal.secure.two_party.lattice.small_numbers import SmallNumbers
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.wire_words import pack, unpack, wire_bytes

Array = npt.NDArray[Any]

EXACT_BITS = 55
"""Bits to which a proof of the public key is rounded, the most that there are."""


class CiphertextLink:
    """Ciphertexts of polynomials (primes, count, N) between the two parties.

    It begins with the label party's public keys, which are sent when the object is made.
    """

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        roles: TwoRoles,
        ring: PolynomialRing,
        what: str,
        gathered: int = 1,
    ) -> None:
        self.me, self.peer = mesh.me, roles.peer(mesh.me)
        self._mesh, self._ring, self._roles, self._what = mesh, ring, roles, what
        self._seeds = SeedSequence(keys, self.peer, what, *roles.purpose)
        self._gathered = gathered
        self._proof_bits = proof_bits(ring.modulus, gathered)
        self._a = self._uniform(1)
        switching = self._uniform(gathered * DIGITS) if gathered > 1 else None
        if mesh.me == roles.label_party:
            self._key = SecretKey(ring)
            self._answer_keys = [self._key]
            self._send_keys("key", [self._key.public_key(self._a)])
            if switching is not None:
                self._answer_keys = [SecretKey(ring) for _ in range(gathered)]
                self._send_switching(switching)
            self._answer_proof()
        else:
            self._numbers = SmallNumbers()
            self._b = self._answer_b = self._receive_keys("key", 1)
            self._switching: SwitchingKey | None = None
            if switching is not None:
                self._receive_switching(switching)
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
        """B: make answers of ciphertexts, of which c1 looks uniform; values in and out.

        There are as many c0 as before, and one c1 for each ``gathered`` of them. No error is added
        to c0, which the caller keeps, or puts noise on that is larger.
        """
        if self._switching is not None:
            c0, c1 = self._switching.switch(c0, c1)
        return self._add_zero(c0, c1, self._answer_b)

    def send_hidden(self, step: str, c1: Array, bits: int) -> None:
        """B: send c1 (values) of answers that `hide` returned."""
        self._send(step, self._ring.coefficients(c1), bits)

    def receive_hidden(self, step: str, count: int, bits: int) -> Array:
        """A: receive c1 of so many answers, and multiply it by their keys: c1·s by coefficients."""
        c1 = self._receive(step, -(-count // self._gathered), bits)
        parts = np.stack([key.times(c1) for key in self._answer_keys], axis=2)
        return np.asarray(parts.reshape(len(parts), -1, self._ring.degree)[:, :count])

    def _add_zero(self, c0: Array, c1: Array, b: Array) -> tuple[Array, Array]:
        """B: add fresh encryptions of zero under public keys ``b``, one for each c1."""
        ring, count, keys = self._ring, c0.shape[1], b.shape[1]
        shape = (c1.shape[1], ring.degree)
        u = ring.values(ring.lift(self._numbers.ternary(shape)))
        errors = ring.values(ring.lift(self._numbers.errors(shape)))
        hidden = ring.multiply_add(u, self._a, ring.add(c1, errors))
        for key in range(keys):
            own = slice(key, count, keys)
            part = np.ascontiguousarray(c0[:, own])
            c0[:, own] = ring.multiply_add(u[:, : part.shape[1]], b[:, key : key + 1], part)
        return c0, hidden

    def _send(self, step: str, coefficients: Array, bits: int) -> None:
        words = self._ring.fractions(coefficients, bits)
        self._mesh.send(self.peer, self.tag(step), pack(words, bits))

    def _receive(self, step: str, count: int, bits: int) -> Array:
        """Receive so many polynomials, as values."""
        shape = (count, self._ring.degree)
        size = wire_bytes(math.prod(shape), bits)
        packed = self._mesh.recv_array(self.peer, self.tag(step), np.uint8, (size,))
        return self._ring.values(self._ring.scaled(unpack(packed, shape, bits), bits))

    def _send_keys(self, step: str, residues: list[Array]) -> None:
        """A: send polynomials by their exact residues."""
        self._mesh.send(self.peer, self.tag(step), pack(np.stack(residues, axis=1), PRIME_BITS))

    def _receive_keys(self, step: str, *counts: int) -> Array:
        """B: receive polynomials (primes, *counts, N) as values; refuse what is no residue."""
        ring, tag = self._ring, self.tag(step)
        shape = (len(ring.primes), *counts, ring.degree)
        size = wire_bytes(math.prod(shape), PRIME_BITS)
        packed = self._mesh.recv_array(self.peer, tag, np.uint8, (size,))
        residues = unpack(packed, shape, PRIME_BITS)
        if not ring.all_below(residues):
            raise MeshError(
                f"{self.me}: {self.peer} sent numbers under {tag!r} that are no residues; "
                "nothing was computed with them"
            )
        flat = residues.reshape(shape[0], -1, ring.degree)
        return ring.values(flat).reshape(shape)

    def _send_switching(self, a: Array) -> None:
        """A: send the public keys for answers, and the switching key to them."""
        factors = gadget(self._ring.modulus)
        self._send_keys("key/answers", [key.public_key(self._a)[:, 0] for key in self._answer_keys])
        self._send_keys(
            "key/switching",
            [
                key.switching_key(a, number * DIGITS, factors, self._key)
                for number, key in enumerate(self._answer_keys)
            ],
        )

    def _receive_switching(self, a: Array) -> None:
        count = self._gathered
        self._answer_b = self._receive_keys("key/answers", count)
        b = self._receive_keys("key/switching", count, count * DIGITS)
        self._switching = SwitchingKey(self._ring, count, a, b)

    def _prove_key(self) -> None:
        """B: encrypt random numbers under A's public keys, and go on if A can read them."""
        numbers = self._numbers.words((self._gathered, self._ring.degree), np.uint64)
        numbers >>= np.uint64(64 - self._proof_bits)
        c0 = self._ring.values(self._ring.scaled(numbers, self._proof_bits))
        c1 = np.zeros_like(c0)
        if self._switching is not None:
            c0, c1 = self._add_zero(c0, c1, self._b)
        c0, c1 = self.hide(c0, c1)
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
        count = self._gathered
        c0 = self._ring.coefficients(self._receive("key/proof/c0", count, EXACT_BITS))
        phase = self._ring.add(c0, self.receive_hidden("key/proof/c1", count, EXACT_BITS))
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


def proof_bits(modulus: int, gathered: int = 1) -> int:
    """Bits of the random numbers that prove public keys.

    13 less than the modulus has, 17 with a switching key, whose errors are larger; or as many as
    rounding to `EXACT_BITS` leaves exact.
    """
    return min(modulus.bit_length() - (13 if gathered == 1 else 17), EXACT_BITS - 10)


def _hashes(numbers: Array) -> tuple[Array, Array]:
    """Two hashes of these numbers, of which neither tells the other."""
    text = numbers.astype("<u8").tobytes()
    first, second = (hashlib.sha256(label + text).digest() for label in (b"asked", b"answer"))
    return np.frombuffer(first, np.uint8), np.frombuffer(second, np.uint8)
