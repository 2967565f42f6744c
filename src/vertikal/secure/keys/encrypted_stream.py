"""A stream of bytes under a passphrase, for files that leave a party's disk.

The key is scrypt's of the passphrase and a salt. The stream is cut into pieces of 1 MiB, each under
AES-256-GCM; its nonce is the number of the piece and a mark of the last one, so that pieces cannot
be moved, repeated or cut off unnoticed. A salt is drawn for every stream, and so every nonce is
used once with its key.

    8 bytes   magic, with the version of this format
    16 bytes  salt
    then for each piece: 4 bytes length of what follows, big-endian; the piece with its tag
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from vertikal.errors import InputError

MAGIC = b"VKENC\0\0\1"
PIECE = 1 << 20
SALT = 16
_TAG = 16
_LENGTH = struct.Struct(">I")
COST = 1 << 17
"""Rounds of scrypt: 128 MiB and about half a second for each try."""


class EncryptedWriter:
    """A file-like object whose bytes are written to ``file`` encrypted; `close` ends the stream."""

    def __init__(self, file: BinaryIO, passphrase: bytes) -> None:
        self._file = file
        salt = os.urandom(SALT)
        self._cipher = _cipher(passphrase, salt)
        self._number = 0
        self._waiting = bytearray()
        self._file.write(MAGIC + salt)

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) > PIECE:
            self._piece(bytes(self._waiting[:PIECE]), last=False)
            del self._waiting[:PIECE]
        return len(data)

    def close(self) -> None:
        """Write the last piece, which says that it is the last."""
        self._piece(bytes(self._waiting), last=True)

    def _piece(self, plain: bytes, *, last: bool) -> None:
        encrypted = self._cipher.encrypt(_nonce(self._number, last), plain, MAGIC)
        self._file.write(_LENGTH.pack(len(encrypted)) + encrypted)
        self._number += 1


class EncryptedReader:
    """A file-like object that reads such a stream; InputError if it was changed or cut off."""

    def __init__(self, file: BinaryIO, passphrase: bytes) -> None:
        self._exactly = _reader(file)
        self._file = file
        if self._exactly(len(MAGIC)) != MAGIC:
            raise InputError("this file is not encrypted by this release, or not at all")
        self._cipher = _cipher(passphrase, self._exactly(SALT))
        self._number = 0
        self._ready = bytearray()
        self._ended = False

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer only at the end of the stream."""
        while len(self._ready) < size and not self._ended:
            self._ready += self._piece()
        found = bytes(self._ready[:size])
        del self._ready[:size]
        return found

    def _piece(self) -> bytes:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if not _TAG <= length <= PIECE + _TAG:
            raise InputError("the encrypted file is damaged")
        encrypted = self._exactly(length)
        for last in (False, True):
            try:
                plain = self._cipher.decrypt(_nonce(self._number, last), encrypted, MAGIC)
            except InvalidTag:
                continue
            self._ended = last
            self._number += 1
            return plain
        if self._number:
            raise InputError("the encrypted file is damaged")
        raise InputError("the passphrase is wrong, or the encrypted file is damaged")


def is_encrypted(head: bytes) -> bool:
    """Tell by the first bytes of a file whether it is such a stream."""
    return head.startswith(MAGIC)


def _cipher(passphrase: bytes, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, length=32, n=COST, r=8, p=1).derive(passphrase))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _reader(file: BinaryIO) -> Callable[[int], bytes]:
    def exactly(size: int) -> bytes:
        found = file.read(size)
        if len(found) < size:
            raise InputError("the encrypted file ends too early: it was cut off")
        return found

    return exactly
