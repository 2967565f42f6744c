"""Keys of a client: one that signs, and pairs of keys by which two clients share a secret.

Signatures are Ed25519. Shared keys are X25519 exchanges with both public keys mixed in. A message
encrypted for another client goes one way under a key of its own, which is used once, so the nonce
is constant.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from vertikal.errors import InputError, SecrecyError
from vertikal.secure.keys.keystream import KEY_BYTES
from vertikal.secure.keys.prg import derive_key, encode_texts, fresh_key

_NONCE = bytes(12)


@dataclass(frozen=True)
class SigningKey:
    """The key with which a client signs; everybody knows it by ``public``."""

    public: bytes
    _private: Ed25519PrivateKey = field(repr=False, compare=False)

    @classmethod
    def fresh(cls) -> SigningKey:
        return cls.of(fresh_key())

    @classmethod
    def of(cls, secret: bytes) -> SigningKey:
        """Make the key of a secret of 32 bytes, which is all that its owner has to keep."""
        if len(secret) != KEY_BYTES:
            raise InputError.of("signing key", f"of {KEY_BYTES} bytes", f"{len(secret)} bytes")
        private = Ed25519PrivateKey.from_private_bytes(secret)
        return cls(private.public_key().public_bytes_raw(), private)

    def sign(self, *parts: bytes) -> bytes:
        return self._private.sign(_joined(parts))


def is_signed(public: bytes, signature: bytes, *parts: bytes) -> bool:
    """Check that the holder of ``public`` has signed these parts, in this order."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _joined(parts))
    except (InvalidSignature, ValueError):
        return False
    return True


def _joined(parts: tuple[bytes, ...]) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


class ExchangeKey:
    """A private X25519 key made from a secret, with what it shares with others' public keys."""

    def __init__(self, secret: bytes, *purpose: str) -> None:
        self._private = X25519PrivateKey.from_private_bytes(
            hashlib.sha256(encode_texts("exchange", *purpose) + secret).digest()
        )
        self.public = self._private.public_key().public_bytes_raw()

    def with_peer(self, public: bytes, *purpose: str) -> bytes:
        """Derive the 32 bytes that this key and the peer's share; refuse an unusable key."""
        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as error:
            raise SecrecyError(f"public key: {error}; nothing was derived from it") from None
        both = b"".join(sorted((self.public, public)))
        return derive_key(hashlib.sha256(both + shared).digest(), *purpose)


def encrypt(key: bytes, sender: str, receiver: str, message: bytes) -> bytes:
    """Encrypt and authenticate ``message`` from ``sender`` to ``receiver`` under their key."""
    road = encode_texts(sender, receiver)
    return AESGCM(derive_key(key, "seal", sender, receiver)).encrypt(_NONCE, message, road)


def decrypt(key: bytes, sender: str, receiver: str, encrypted: bytes) -> bytes:
    """Open what `encrypt` made; refuse what was changed, or meant for somebody else."""
    road = encode_texts(sender, receiver)
    try:
        return AESGCM(derive_key(key, "seal", sender, receiver)).decrypt(_NONCE, encrypted, road)
    except (InvalidTag, ValueError):
        raise SecrecyError(
            f"{receiver}: the encrypted shares of {sender} do not open; they were changed on the "
            "way"
        ) from None
