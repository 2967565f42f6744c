"""Ed25519 signatures over lists of words, by which clients know each other's messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


@dataclass(frozen=True)
class Identity:
    """A client's signing key; ``public`` is what everybody knows it by."""

    public: bytes
    _private: Ed25519PrivateKey = field(repr=False, compare=False)

    @classmethod
    def fresh(cls) -> Identity:
        private = Ed25519PrivateKey.generate()
        return cls(private.public_key().public_bytes_raw(), private)

    def sign(self, *words: bytes) -> bytes:
        return self._private.sign(_joined(words))


def is_signed(public: bytes, signature: bytes, *words: bytes) -> bool:
    """Whether the holder of ``public`` has signed these words, in this order."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _joined(words))
    except (InvalidSignature, ValueError):
        return False
    return True


def _joined(words: tuple[bytes, ...]) -> bytes:
    return b"".join(len(word).to_bytes(4, "big") + word for word in words)
