"""Keystreams: known answers, an independent reference, and two ways to the same bytes."""

from __future__ import annotations

import struct
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from vertikal.errors import InputError
from vertikal.secure.keys import keystream
from vertikal.secure.keys.keystream import LONG, TILE, Keystream

KEY = bytes(range(32))
SIXTY_FOUR_GB = 1 << 36


def reference(key, number, count, skip=0):
    """AES-256-CTR, block by block: the encryptions of number · 2^64, number · 2^64 + 1, ..."""
    block_cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    first, rest = divmod(skip, 16)
    blocks = -(-(rest + count) // 16)
    stream = b"".join(
        block_cipher.update(((number << 64) + first + i).to_bytes(16, "big")) for i in range(blocks)
    )
    return stream[rest : rest + count]


@pytest.fixture(params=[False, True], ids=["counter mode", "GCM"])
def fast(request, monkeypatch):
    """Take each of the two ways, whichever is faster here."""
    monkeypatch.setattr(keystream, "gcm_is_faster", lambda: request.param)
    return request.param


def read(stream, *counts):
    parts = [bytearray(count) for count in counts]
    for part in parts:
        stream.fill(memoryview(part))
    return b"".join(parts)


def whole(key, number, count):
    return read(Keystream(key, number), count)


def test_known_answer():
    """The encryption of the zero block under the zero key, as in NIST's AES-256 test vectors."""
    assert whole(bytes(32), 0, 16).hex() == "dc95c078a2408989ad48a21492842087"


@pytest.mark.parametrize("number", [0, 1, 2, 255, 2**32, 2**63, 2**64 - 1])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 1000])
def test_streams_equal_the_reference(number, count):
    assert whole(KEY, number, count) == reference(KEY, number, count)


def test_the_cryptography_library_used_directly_gives_the_same():
    counter = struct.pack(">QQ", 7, 0)
    direct = Cipher(algorithms.AES(KEY), modes.CTR(counter)).encryptor().update(bytes(100))
    assert whole(KEY, 7, 100) == direct


def test_streams_of_different_numbers_do_not_overlap():
    """No block of one stream occurs in another, however they are lined up."""
    blocks = [
        whole(KEY, number, 16 * 2000)[i : i + 16]
        for number in (0, 1, 2, 3, 256, 2**63)
        for i in range(0, 16 * 2000, 16)
    ]
    assert len(set(blocks)) == len(blocks)
    other_key = bytes(reversed(KEY))
    assert not set(blocks) & {whole(other_key, 0, 3200)[i : i + 16] for i in range(0, 3200, 16)}


@pytest.mark.parametrize(
    "counts",
    [
        (LONG,),
        (TILE + 100,),
        (5, TILE + 11, 84),
        (TILE, 3, TILE),
        (16, LONG),
        (32, LONG),
        (0, LONG),
    ],
)
def test_long_streams_equal_the_reference_however_they_are_read(fast, counts):
    assert read(Keystream(KEY, 3), *counts) == reference(KEY, 3, sum(counts))


def test_streams_longer_than_the_zeros_at_hand_are_made_piece_by_piece(fast, monkeypatch):
    monkeypatch.setattr(keystream, "ZEROS", memoryview(bytes(1000)))
    assert read(Keystream(KEY, 3), LONG, 10) == reference(KEY, 3, LONG + 10)


@pytest.mark.parametrize("together", [False, True], ids=["apart", "in place"])
@pytest.mark.parametrize("counts", [(0,), (7,), (LONG,), (5, TILE + 11, 84), (32, LONG)])
def test_bytes_are_enciphered_by_the_stream(fast, counts, together):
    plain = np.random.default_rng(0).integers(0, 256, sum(counts), np.uint8)
    given = plain.copy()
    out = given if together else np.empty_like(given)
    stream, start = Keystream(KEY, 6), 0
    for count in counts:
        here = slice(start, start + count)
        stream.encipher(given[here].data, out[here].data)
        start += count
    expected = np.frombuffer(reference(KEY, 6, sum(counts)), np.uint8)
    assert np.array_equal(out, plain ^ expected)
    assert together or np.array_equal(given, plain)


@pytest.mark.parametrize("skip", [1, 16, 31, 32, 33, 48, SIXTY_FOUR_GB, SIXTY_FOUR_GB + 32])
def test_streams_may_begin_anywhere(fast, skip):
    """Also in the blocks that GCM does not make, under the first nonce and under the next."""
    found = read(Keystream(KEY, 9, skip), LONG, 10)
    assert found == reference(KEY, 9, LONG + 10, skip)


@pytest.mark.parametrize("before", [LONG, LONG - 7, 16, 1])
def test_streams_go_on_where_a_nonce_ends(fast, before):
    skip = SIXTY_FOUR_GB - before
    assert read(Keystream(KEY, 1, skip), 2 * LONG) == reference(KEY, 1, 2 * LONG, skip)


def test_gcm_makes_the_bytes_where_it_is_faster(fast, monkeypatch):
    """All of them but two blocks; short streams are not worth opening it."""
    made = []
    original = keystream.modes.GCM

    def counted(nonce):
        made.append(nonce)
        return original(nonce)

    monkeypatch.setattr(keystream.modes, "GCM", counted)
    read(Keystream(KEY, 5), LONG - 1, 5)
    assert not made
    read(Keystream(KEY, 5), LONG, LONG, 5)
    assert made == ([struct.pack(">QI", 5, 0)] if fast else [])


def test_which_is_faster_is_measured_and_kept():
    first = keystream.gcm_is_faster()
    assert first in (True, False)
    assert keystream.gcm_is_faster() is first


class Pretended:
    """Counter mode works for 2 ms; GCM does what a test says, call by call."""

    def __init__(self, algorithm, mode):
        self.calls = 0
        self.gcm = isinstance(mode, keystream.modes.GCM)

    def encryptor(self):
        return self

    def update_into(self, data, out):
        self.calls += 1
        if self.gcm:
            self.fast(self.calls)
        else:
            work(0.002)


def work(seconds):
    began = time.thread_time()
    while time.thread_time() < began + seconds:
        pass


def test_waiting_makes_neither_way_slower(monkeypatch):
    """GCM waits, as for a busy process's lock."""
    monkeypatch.setattr(Pretended, "fast", lambda self, call: time.sleep(0.005), raising=False)
    monkeypatch.setattr(keystream, "Cipher", Pretended)
    assert keystream.measure_gcm.__wrapped__()


def test_a_busy_moment_does_not_decide(monkeypatch):
    """GCM is slow but for one call."""
    slow = keystream.MEASUREMENTS // 2
    monkeypatch.setattr(
        Pretended, "fast", lambda self, call: call == slow or work(0.003), raising=False
    )
    monkeypatch.setattr(keystream, "Cipher", Pretended)
    assert keystream.measure_gcm.__wrapped__()


def test_threads_that_ask_at_once_wait_for_one_measurement(monkeypatch):
    measured = []

    def measure():
        measured.append(1)
        time.sleep(0.01)
        return True

    monkeypatch.setattr(keystream, "measure_gcm", cache(measure))
    keystream.gcm_is_faster.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: keystream.gcm_is_faster(), range(4)))
    assert answers == [True] * 4
    assert measured == [1]
    keystream.gcm_is_faster.cache_clear()


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), bytes(16)])
def test_keys_of_other_lengths_are_refused(key):
    with pytest.raises(InputError, match=f"key must be 32 bytes, got {len(key)} bytes"):
        Keystream(key, 0)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_stream_numbers_beyond_64_bits_are_refused(number):
    with pytest.raises(InputError, match=r"number must be a stream number below 2\^64"):
        Keystream(KEY, number)


def test_a_filled_array_is_the_stream():
    room = np.empty(100, np.uint8)
    Keystream(KEY, 2).fill(room.data)
    assert room.tobytes() == reference(KEY, 2, 100)
