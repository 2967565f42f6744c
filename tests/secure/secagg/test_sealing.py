"""Sealed messages, signatures and sums of keystreams: the small parts of secure aggregation."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.naive.secagg import pad
from vertikal.errors import InputError, SecrecyError
from vertikal.secure.keys.prg import TILE
from vertikal.secure.secagg.sealing import ExchangeKey, seal, unseal
from vertikal.secure.secagg.signing import Identity, is_signed
from vertikal.secure.secagg.streams import add_streams


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


def test_a_sealed_message_opens_for_its_receiver_only():
    key = os.urandom(32)
    sealed = seal(key, "ada", "bob", b"share")
    assert unseal(key, "ada", "bob", sealed) == b"share"
    assert b"share" not in sealed
    for wrong in (
        lambda: unseal(key, "bob", "ada", sealed),
        lambda: unseal(os.urandom(32), "ada", "bob", sealed),
        lambda: unseal(key, "ada", "bob", sealed[:-1]),
        lambda: unseal(key, "ada", "bob", b""),
        lambda: unseal(key, "ada", "bob", bytes([sealed[0] ^ 1]) + sealed[1:]),
    ):
        with pytest.raises(SecrecyError, match="do not open"):
            wrong()


def test_a_signature_covers_its_words_and_their_order():
    ada, bob = Identity.fresh(), Identity.fresh()
    signature = ada.sign(b"one", b"two")
    assert is_signed(ada.public, signature, b"one", b"two")
    assert not is_signed(ada.public, signature, b"onet", b"wo")
    assert not is_signed(ada.public, signature, b"two", b"one")
    assert not is_signed(bob.public, signature, b"one", b"two")
    assert not is_signed(b"no key", signature, b"one", b"two")
    assert not is_signed(ada.public, b"no signature", b"one", b"two")
    assert "private" not in repr(ada)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("length", [0, 1, 100, TILE // 4 + 3])
def test_streams_are_the_written_out_pads(bits, length):
    keys = [(os.urandom(32), 1), (os.urandom(32), -1), (os.urandom(32), 1)]
    start = np.arange(length).astype(f"uint{bits}")
    values = start.copy()
    add_streams(values, keys)
    expected = [
        (int(x) + sum(sign * word for (_, sign), word in zip(keys, words, strict=True))) % 2**bits
        for x, *words in zip(start, *(pad(key, length, bits // 8) for key, _ in keys), strict=True)
    ]
    assert values.tolist() == expected


def test_streams_of_opposite_sign_cancel():
    keys = [os.urandom(32) for _ in range(3)]
    values = np.zeros(3 * TILE, np.uint16)
    add_streams(values, [(key, 1) for key in keys])
    assert values.any()
    add_streams(values, [(key, -1) for key in reversed(keys)])
    assert not values.any()


@pytest.mark.parametrize(
    "values", [np.zeros(4), np.zeros((2, 2), np.uint8), np.zeros(8, np.uint8)[::2]]
)
def test_streams_want_vectors_of_ring_elements(values):
    with pytest.raises(InputError, match="contiguous vector"):
        add_streams(values, [])
