"""Keys of clients: encrypted messages open for their receiver only, signatures cover all parts."""

from __future__ import annotations

import os

import pytest

from vertikal.errors import InputError, SecrecyError
from vertikal.secure.secagg.client_keys import ExchangeKey, SigningKey, decrypt, encrypt, is_signed


def test_both_ends_derive_one_key_and_nobody_else_does():
    a, b, c = (ExchangeKey(os.urandom(31), "seal") for _ in range(3))
    assert a.with_peer(b.public, "job") == b.with_peer(a.public, "job")
    assert a.with_peer(b.public, "job") != a.with_peer(b.public, "another job")
    assert a.with_peer(b.public, "job") != c.with_peer(b.public, "job")


def test_one_secret_gives_unrelated_keys_for_two_purposes():
    secret = os.urandom(31)
    assert ExchangeKey(secret, "seal").public != ExchangeKey(secret, "pads").public


@pytest.mark.parametrize("public", [bytes(32), b"short"])
def test_unusable_public_keys_are_refused(public):
    with pytest.raises(SecrecyError, match="public key"):
        ExchangeKey(os.urandom(31), "seal").with_peer(public, "job")


def test_an_encrypted_message_opens_for_its_receiver_only():
    key = os.urandom(32)
    encrypted = encrypt(key, "ada", "bob", b"share")
    assert decrypt(key, "ada", "bob", encrypted) == b"share"
    assert b"share" not in encrypted
    for wrong in (
        lambda: decrypt(key, "bob", "ada", encrypted),
        lambda: decrypt(os.urandom(32), "ada", "bob", encrypted),
        lambda: decrypt(key, "ada", "bob", encrypted[:-1]),
        lambda: decrypt(key, "ada", "bob", b""),
        lambda: decrypt(key, "ada", "bob", bytes([encrypted[0] ^ 1]) + encrypted[1:]),
    ):
        with pytest.raises(SecrecyError, match="do not open"):
            wrong()


def test_a_signature_covers_its_words_and_their_order():
    ada, bob = SigningKey.fresh(), SigningKey.fresh()
    signature = ada.sign(b"one", b"two")
    assert is_signed(ada.public, signature, b"one", b"two")
    assert not is_signed(ada.public, signature, b"onet", b"wo")
    assert not is_signed(ada.public, signature, b"two", b"one")
    assert not is_signed(bob.public, signature, b"one", b"two")
    assert not is_signed(b"no key", signature, b"one", b"two")
    assert not is_signed(ada.public, b"no signature", b"one", b"two")
    assert "private" not in repr(ada)


def test_a_signing_key_is_the_same_from_its_secret():
    secret = os.urandom(32)
    key = SigningKey.of(secret)
    assert SigningKey.of(secret) == key
    assert is_signed(key.public, SigningKey.of(secret).sign(b"words"), b"words")
    with pytest.raises(InputError, match="signing key must be of 32 bytes, got 31 bytes"):
        SigningKey.of(secret[1:])
