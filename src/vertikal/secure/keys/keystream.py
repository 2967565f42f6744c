"""Keystreams: AES-256 in counter mode, of which everything secret is made.

A stream is named by a 32-byte key and a number; its 128-bit counter starts at number · 2^64, so
streams of one key never overlap as long as each is shorter than 2^68 bytes.

Galois/counter mode (GCM) is counter mode with a tag: under a nonce of 12 bytes it enciphers the
counters nonce · 2^32 + 2, + 3, … up to the next nonce. So what GCM makes of zeros under the
upper 12 bytes of a counter is this stream from the third block on; the first two, and those of the
next nonce 64 GiB later, are made in counter mode. That pays for long streams: OpenSSL 4 enciphers
24 GB/s as GCM with AVX-512, and 9 GB/s in plain counter mode. The tag is never asked for.
"""

from __future__ import annotations

import math
import threading
import time
from functools import cache

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from vertikal.errors import InputError

KEY_BYTES = 32
TILE = 1 << 21
"""Bytes to expand at a time where they are added to others: few enough to stay in the cache, and so
many that threads do not take turns with Python's lock more often than they need."""
LONG = 1 << 17
"""Bytes from which GCM pays: opening it takes as long as a few ten thousand bytes."""

MEASUREMENTS = 16
"""Times that each of the two ways is measured; a busy moment spoils only some of them."""

ZEROS = memoryview(bytes(8 * TILE))
"""Zeros to encipher. Nobody has written to this memory, so all its pages are one in the cache."""

_BLOCK = 16
_NONCE_BLOCKS = 1 << 32
_FIRST_OF_GCM = 2
_measuring = threading.Lock()  # parties that measure at once would disturb each other


class Keystream:
    """Stream ``number`` under ``key``, read from its byte ``skip`` on."""

    _context: CipherContext

    def __init__(self, key: bytes, number: int, skip: int = 0) -> None:
        if len(key) != KEY_BYTES:
            raise InputError.of("key", f"{KEY_BYTES} bytes", f"{len(key)} bytes")
        if not 0 <= number < 1 << 64:
            raise InputError.of("number", "a stream number below 2^64", number)
        self._cipher, self._number, self._place = algorithms.AES(key), number, skip
        self._left = 0  # bytes that the open context gives

    def fill(self, out: memoryview) -> None:
        """Fill ``out`` (bytes) with the next bytes of the stream."""
        self._run(None, out)

    def encipher(self, source: memoryview, out: memoryview) -> None:
        """Write ``source``, exclusive or the next bytes of the stream, to ``out``.

        They have equally many bytes, and may be the same. A second time takes the stream off again.
        """
        self._run(source, out)

    def _run(self, source: memoryview | None, out: memoryview) -> None:
        fast = len(out) >= LONG and gcm_is_faster()
        start = 0
        while start < len(out):
            if not self._left:
                self._open(fast)
            count = min(len(out) - start, self._left, len(ZEROS) if source is None else len(out))
            given = ZEROS[:count] if source is None else source[start : start + count]
            # One call for as much as may be: Python's lock is let go meanwhile, and comes back late
            # where many threads want it.
            self._context.update_into(given, out[start : start + count])
            self._left -= count
            self._place += count
            start += count

    def _open(self, fast: bool) -> None:
        """Open a context where the stream stands, as GCM if it is to be fast and can be."""
        block, rest = divmod(self._place, _BLOCK)
        counter = self._number.to_bytes(8, "big") + block.to_bytes(8, "big")
        before = _FIRST_OF_GCM - block % _NONCE_BLOCKS
        if fast and before == 0 and rest == 0:
            self._context = Cipher(self._cipher, modes.GCM(counter[:12])).encryptor()
            self._left = (_NONCE_BLOCKS - _FIRST_OF_GCM) * _BLOCK
            return
        self._context = Cipher(self._cipher, modes.CTR(counter)).encryptor()
        self._context.update(bytes(rest))
        reaches = before if fast and before > 0 else _NONCE_BLOCKS
        self._left = reaches * _BLOCK - rest


@cache
def gcm_is_faster() -> bool:
    """Tell if GCM is the faster of the two ways to the same bytes here, as measured once."""
    with _measuring:
        return measure_gcm()


@cache
def measure_gcm() -> bool:
    """Measure both ways in turn; return True if the best time of GCM is the shorter one.

    The processor time of this thread counts: what it waits for Python's lock and for a core would
    decide otherwise in a process whose other threads are busy.
    """
    room = bytearray(LONG)
    contexts = [
        Cipher(algorithms.AES(bytes(KEY_BYTES)), mode).encryptor()
        for mode in (modes.GCM(bytes(12)), modes.CTR(bytes(16)))
    ]
    best = [math.inf, math.inf]
    for _ in range(MEASUREMENTS):
        for which, context in enumerate(contexts):
            start = time.thread_time()
            context.update_into(ZEROS[:LONG], room)
            best[which] = min(best[which], time.thread_time() - start)
    return best[0] < best[1]
