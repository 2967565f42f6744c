"""Words on the wire: every length comes back, and takes as many bytes as it says."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.secure.two_party.wire_words import pack, unpack, wire_bytes


@pytest.mark.parametrize("bits", [1, 7, 12, 14, 22, 24, 28, 32, 34, 39, 52, 63])
@pytest.mark.parametrize("shape", [(3, 16), (5, 7), (1, 1)])
def test_words_come_back(bits, shape):
    words = np.random.default_rng(bits).integers(0, 2**bits, shape, dtype=np.uint64)
    words.flat[0] = 2**bits - 1
    if bits <= 32:
        words = words.astype(np.uint32)
    packed = pack(words, bits)
    assert packed.dtype == np.uint8
    assert packed.shape == (wire_bytes(words.size, bits),)
    found = unpack(packed, shape, bits)
    assert found.dtype == words.dtype
    assert np.array_equal(found, words)


def test_eight_words_are_as_many_bytes_as_a_word_has_bits():
    assert [wire_bytes(count, 39) for count in (1, 8, 9, 2048)] == [39, 39, 78, 2048 * 39 // 8]


def test_the_example_of_the_page():
    packed = pack(np.array([0x123, 0x456], np.uint32), 12).tolist()
    assert packed[:2] == [0x23, 0x56]
    assert packed[8] == 0x41
    assert sum(packed) == 0x23 + 0x56 + 0x41
