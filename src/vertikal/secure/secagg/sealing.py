"""Pairwise secrets of clients: one key per pair, and messages that only the other can open.

Keys are X25519 exchanges with both public keys mixed in. A sealed message goes one way under a key
of its own, which is used once, so the nonce is constant.
"""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from vertikal.errors import SecrecyError
from vertikal.secure.keys.prg import derive_key, encode_texts

_NONCE = bytes(12)


class ExchangeKey:
    """A private X25519 key made from a secret, with what it shares with others' public keys."""

    def __init__(self, secret: bytes, *purpose: str) -> None:
        self._private = X25519PrivateKey.from_private_bytes(
            hashlib.sha256(encode_texts("exchange", *purpose) + secret).digest()
        )
        self.public = self._private.public_key().public_bytes_raw()

    def with_peer(self, public: bytes, *purpose: str) -> bytes:
        """The 32-byte key that this key and the peer's can both derive; raises on unusable keys."""
        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as error:
            raise SecrecyError(f"public key: {error}; nothing was derived from it") from None
        both = b"".join(sorted((self.public, public)))
        return derive_key(hashlib.sha256(both + shared).digest(), *purpose)


def seal(key: bytes, sender: str, receiver: str, message: bytes) -> bytes:
    """``message`` encrypted and authenticated, from ``sender`` to ``receiver`` under their key."""
    road = encode_texts(sender, receiver)
    return AESGCM(derive_key(key, "seal", sender, receiver)).encrypt(_NONCE, message, road)


def unseal(key: bytes, sender: str, receiver: str, sealed: bytes) -> bytes:
    """What `seal` closed; refuses what was changed, or meant for somebody else."""
    road = encode_texts(sender, receiver)
    try:
        return AESGCM(derive_key(key, "seal", sender, receiver)).decrypt(_NONCE, sealed, road)
    except (InvalidTag, ValueError):
        raise SecrecyError(
            f"{receiver}: the sealed shares of {sender} do not open; they were changed on the way"
        ) from None
