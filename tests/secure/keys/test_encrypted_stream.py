"""A stream under a passphrase: it comes back whole, or not at all."""

from __future__ import annotations

import io

import pytest

from vertikal.errors import InputError
from vertikal.secure.keys import encrypted_stream
from vertikal.secure.keys.encrypted_stream import (
    MAGIC,
    SALT,
    EncryptedReader,
    EncryptedWriter,
    is_encrypted,
)

HEAD = len(MAGIC) + SALT


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Small pieces; what a passphrase costs is not what is tested."""
    monkeypatch.setattr(encrypted_stream, "PIECE", 100)
    monkeypatch.setattr(encrypted_stream, "COST", 2)


def encrypted(content: bytes, passphrase: bytes = b"sesame") -> bytes:
    file = io.BytesIO()
    writer = EncryptedWriter(file, passphrase)
    for start in range(0, len(content), 33):
        writer.write(content[start : start + 33])
    writer.close()
    return file.getvalue()


def decrypted(raw: bytes, passphrase: bytes = b"sesame") -> bytes:
    reader = EncryptedReader(io.BytesIO(raw), passphrase)
    return b"".join(iter(lambda: reader.read(17), b""))


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 200, 1234])
def test_it_comes_back(size):
    content = bytes(i % 251 for i in range(size))
    raw = encrypted(content)
    assert is_encrypted(raw)
    assert not is_encrypted(content)
    assert decrypted(raw) == content


def test_nothing_of_it_can_be_read_and_no_two_are_alike():
    content = b"the secret seed of a shard " * 20
    first, second = encrypted(content), encrypted(content)
    assert b"secret" not in first
    assert first[:HEAD] != second[:HEAD]
    assert first[HEAD:] != second[HEAD:]


def test_another_passphrase_opens_nothing():
    with pytest.raises(InputError, match="passphrase is wrong"):
        decrypted(encrypted(b"x" * 300), b"open")


def pieces(raw: bytes) -> list[bytes]:
    found, place = [], HEAD
    while place < len(raw):
        end = place + 4 + int.from_bytes(raw[place : place + 4], "big")
        found.append(raw[place:end])
        place = end
    return found


def test_pieces_cannot_be_moved_dropped_or_repeated():
    raw = encrypted(bytes(range(250)) * 2)
    head, parts = raw[:HEAD], pieces(raw)
    assert len(parts) == 5
    assert decrypted(head + b"".join(parts)) == bytes(range(250)) * 2
    for changed in (
        [parts[1], parts[0], *parts[2:]],
        [parts[0], parts[0], *parts[1:]],
        [parts[0], *parts[2:]],
    ):
        with pytest.raises(InputError, match="damaged"):
            decrypted(head + b"".join(changed))
    for cut in (head + b"".join(parts[:-1]), raw[:-1], raw[: HEAD + 2]):
        with pytest.raises(InputError, match="cut off"):
            decrypted(cut)


@pytest.mark.parametrize("place", [HEAD + 10, -1])
def test_a_changed_byte_is_noticed(place):
    raw = bytearray(encrypted(b"x" * 300))
    raw[place] ^= 1
    with pytest.raises(InputError, match="damaged"):
        decrypted(bytes(raw))


@pytest.mark.parametrize("length", [0, 15, 117, 2**31])
def test_a_length_that_no_piece_has_is_refused(length):
    raw = encrypted(b"x" * 300)
    with pytest.raises(InputError, match="damaged"):
        decrypted(raw[:HEAD] + length.to_bytes(4, "big") + raw[HEAD + 4 :])


def test_another_file_is_named_so():
    with pytest.raises(InputError, match="not encrypted"):
        decrypted(b"x" * 100)
