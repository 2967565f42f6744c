"""Encryption that adds: sums, several numbers in one, and keys that are refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from vertikal.errors import InputError, MeshError
from vertikal.secure.additive_encryption import AdditiveCipher, AdditiveKey, Fields


@pytest.fixture(scope="module")
def key():
    return AdditiveKey(512)


def test_sums_of_groups(key):
    cipher = AdditiveCipher.of(key.modulus, 512)
    encrypted = cipher.encrypt([5, 7, 11, 13])
    assert encrypted.shape == (4, cipher.bytes)
    totals = cipher.sums(encrypted, np.array([2, 0, 2, 0]), 4)
    assert key.decrypt(totals) == [20, 0, 16, 0]


def test_equal_numbers_look_different(key):
    encrypted = key.cipher.encrypt([1] * 20)
    assert len({row.tobytes() for row in encrypted}) == 20
    assert key.decrypt(encrypted) == [1] * 20


def test_several_numbers_in_one(key):
    fields = Fields(3)
    rows = [(0.25, 1.5, 1.0), (1.75, 0.125, 1.0), (0.0, 3.0, 1.0)]
    for row in rows:
        assert fields.unpack(fields.pack(row)) == pytest.approx(row, abs=1e-10)
    encrypted = key.cipher.encrypt([fields.pack(row) for row in rows])
    (total,) = key.decrypt(key.cipher.sums(encrypted, np.zeros(3, int), 1))
    assert fields.unpack(total) == pytest.approx([2.0, 4.625, 3.0], abs=1e-10)


def test_short_keys_are_refused(key):
    with pytest.raises(InputError, match="key_bits must be at least 512, got 256"):
        AdditiveKey(256)
    with pytest.raises(MeshError, match="a public key of 512 bits, 1024 were agreed"):
        AdditiveCipher.of(key.modulus, 1024)


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "phe", None)
    with pytest.raises(InputError, match=r'pip install "vertikal\[baselines\]"'):
        AdditiveKey(512)
