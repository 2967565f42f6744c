"""Encryption that adds: sums of numbers under somebody's key, by Paillier's scheme (`phe`).

Whoever has the public key encrypts and adds; only the holder of the private key reads a sum. A
ciphertext is 2·bits/8 bytes, in arrays (n, bytes). Several numbers share one ciphertext: `Fields`
puts them side by side in one integer, with room for their sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError, MeshError

Array = npt.NDArray[Any]

FIELD_BITS = 64
"""Bits of one number in a ciphertext; the fraction has `FRACTION_BITS` of them."""
FRACTION_BITS = 36
FEWEST_BITS = 512


def paillier() -> Any:
    """Import phe; InputError where it is not installed."""
    try:
        from phe import paillier as found
    except ImportError:
        raise InputError(
            'SecureBoost needs phe, which is not installed; pip install "vertikal[baselines]"'
        ) from None
    return found


@dataclass(frozen=True)
class Fields:
    """Numbers side by side in one integer: each not negative, and their sums below 2^28."""

    count: int

    def pack(self, numbers: Sequence[float]) -> int:
        """Write the numbers into one integer, the first highest."""
        packed = 0
        for number in numbers:
            packed = (packed << FIELD_BITS) + round(number * 2.0**FRACTION_BITS)
        return packed

    def unpack(self, packed: int) -> list[float]:
        """Read the numbers, or the sums of numbers, of one integer."""
        mask = (1 << FIELD_BITS) - 1
        parts = [packed >> (FIELD_BITS * place) & mask for place in range(self.count)]
        return [part / 2.0**FRACTION_BITS for part in reversed(parts)]


class AdditiveCipher:
    """A public key: encrypts, and adds what it has encrypted."""

    def __init__(self, modulus: int) -> None:
        self._key = paillier().PaillierPublicKey(modulus)
        self.bytes = -(-self._key.nsquare.bit_length() // 8)

    @classmethod
    def of(cls, modulus: bytes, fewest_bits: int) -> AdditiveCipher:
        """Read a key that a peer has sent; MeshError if it is too short."""
        number = int.from_bytes(modulus, "big")
        if number.bit_length() < fewest_bits:
            raise MeshError(
                f"a public key of {number.bit_length()} bits, {fewest_bits} were agreed"
            )
        return cls(number)

    def encrypt(self, numbers: Sequence[int]) -> Array:
        """Encrypt integers, each with randomness of its own: (n, bytes)."""
        return self._array([self._key.raw_encrypt(number) for number in numbers])

    def sums(self, ciphertexts: Array, groups: Array, count: int) -> Array:
        """Add up the ciphertexts of each group: (count, bytes); ``groups`` (n,) are numbers."""
        totals = [1] * count
        for raw, group in zip(ciphertexts, groups.tolist(), strict=True):
            number = int.from_bytes(raw.tobytes(), "big")
            totals[group] = totals[group] * number % self._key.nsquare
        return self._array(totals)

    def _array(self, numbers: Sequence[int]) -> Array:
        raw = b"".join(number.to_bytes(self.bytes, "big") for number in numbers)
        return np.frombuffer(raw, np.uint8).reshape(-1, self.bytes)


class AdditiveKey:
    """A key pair, fresh from the operating system's randomness."""

    def __init__(self, bits: int) -> None:
        if bits < FEWEST_BITS:
            raise InputError.of("key_bits", f"at least {FEWEST_BITS}", bits)
        public, self._private = paillier().generate_paillier_keypair(n_length=bits)
        self.modulus = public.n.to_bytes(-(-bits // 8), "big")
        self.cipher = AdditiveCipher(public.n)

    def decrypt(self, ciphertexts: Array) -> list[int]:
        """Read sums; an empty one is 0."""
        return [
            self._private.raw_decrypt(int.from_bytes(raw.tobytes(), "big")) for raw in ciphertexts
        ]
