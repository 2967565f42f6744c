"""Numbers from the stream cipher, and keys: words, reals and sums of streams."""

from __future__ import annotations

import hashlib
import hmac
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.naive.secagg import pad
from tests.secure.keys.test_keystream import reference
from vertikal.errors import InputError
from vertikal.secure.keys import prg
from vertikal.secure.keys.keystream import KEY_BYTES, TILE

KEY = bytes(range(32))


def stream(key, number, count):
    return prg.uniform_elements(key, (count,), np.uint8, stream=number).tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_words_are_the_bytes_of_the_stream(dtype):
    words = prg.uniform_elements(KEY, (3, 4), dtype, stream=5)
    assert (words.dtype, words.shape) == (np.dtype(dtype), (3, 4))
    assert words.tobytes() == reference(KEY, 5, 12 * np.dtype(dtype).itemsize)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_words_of_odd_shapes(shape):
    words = prg.uniform_elements(KEY, shape, np.uint16, stream=5)
    assert words.shape == shape
    assert words.tobytes() == reference(KEY, 5, words.nbytes)


def test_fresh_keys_are_fresh():
    keys = {prg.fresh_key() for _ in range(100)}
    assert len(keys) == 100
    assert {len(key) for key in keys} == {KEY_BYTES}


def test_a_derived_key_is_the_hmac_of_length_prefixed_words():
    message = b"\x00\x00\x00\x02ab\x00\x00\x00\x02\xc3\xa9"
    assert prg.encode_texts("ab", "é") == message
    assert prg.derive_key(KEY, "ab", "é") == hmac.new(KEY, message, hashlib.sha256).digest()


def test_derived_keys_are_separate():
    purposes = [
        ("ab", "c"),
        ("a", "bc"),
        ("abc",),
        ("a", "b", "c"),
        (),
        ("",),
        ("", ""),
        ("abc", ""),
    ]
    keys = {prg.derive_key(KEY, *purpose) for purpose in purposes}
    assert len(keys) == len(purposes)
    assert KEY not in keys
    assert prg.derive_key(bytes(32), "ab", "c") not in keys


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_no_two_lists_of_words_share_their_bytes(first, second):
    assert (prg.encode_texts(*first) == prg.encode_texts(*second)) == (first == second)


def test_reals_are_uniform():
    reals = prg.uniform_reals(KEY, (200, 100))
    assert (reals.dtype, reals.shape) == (np.float64, (200, 100))
    assert stats.kstest(reals.ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(reals.ravel()[:-1], reals.ravel()[1:])[0, 1]) < 0.03
    words = np.frombuffer(reference(KEY, 0, 8 * 20_000), np.uint64)
    np.testing.assert_allclose(reals.ravel(), words / 2.0**64, atol=2.0**-51)


def test_reals_lie_in_the_open_interval_even_for_extreme_words(monkeypatch):
    """The normal quantile of 0 or 1 is infinite: neither may ever come."""
    extremes = np.array([0, 1, 2**11, 2**63, 2**64 - 2**11, 2**64 - 1], np.uint64)
    monkeypatch.setattr(prg, "uniform_elements", lambda key, shape, dtype, stream: extremes)
    reals = prg.uniform_reals(KEY, extremes.shape)
    assert reals.min() > 0.0
    assert reals.max() < 1.0
    assert (np.diff(reals) >= 0).all()


def test_one_key_serves_reals_and_elements():
    reals = prg.uniform_reals(KEY, (4,))
    elements = prg.uniform_elements(KEY, (4,), np.uint64)
    assert not np.allclose(reals, elements / 2.0**64)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("length", [0, 1, 100, TILE // 4 + 3])
def test_streams_are_the_written_out_pads(bits, length):
    keys = [(os.urandom(32), 1), (os.urandom(32), -1), (os.urandom(32), 1)]
    start = np.arange(length).astype(f"uint{bits}")
    values = start.copy()
    prg.add_streams(values, keys)
    expected = [
        (int(x) + sum(sign * word for (_, sign), word in zip(keys, words, strict=True))) % 2**bits
        for x, *words in zip(start, *(pad(key, length, bits // 8) for key, _ in keys), strict=True)
    ]
    assert values.tolist() == expected


def test_streams_of_opposite_sign_cancel():
    keys = [os.urandom(32) for _ in range(3)]
    values = np.zeros(3 * TILE, np.uint16)
    prg.add_streams(values, [(key, 1) for key in keys])
    assert values.any()
    prg.add_streams(values, [(key, -1) for key in reversed(keys)])
    assert not values.any()


@pytest.mark.parametrize(
    "values", [np.zeros(4), np.zeros((2, 2), np.uint8), np.zeros(8, np.uint8)[::2]]
)
def test_streams_want_vectors_of_ring_elements(values):
    with pytest.raises(InputError, match="contiguous vector"):
        prg.add_streams(values, [])
