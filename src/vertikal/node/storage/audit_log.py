"""The audit log: one line per thing that a party did or refused, each bound to all before it.

A line is a JSON object; its digest is the SHA-256 of the line without it, and stands again in the
next line as ``previous``. A line that is altered, taken out, put in or moved breaks the chain from
there on, and `verify` says where.

The chain by itself does not show that lines were cut from the end, or that the owner of the machine
has written the whole log anew. Against both there is the *head*, the number and digest of the last
line: give it to somebody else (`vertikal audit head`), and `verify` with it proves that the log of
that day is the beginning of today's. The log keeps its own head in a file beside it, which shows an
accident, such as half a copy; it does not stop somebody who rewrites that file too.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from vertikal.errors import InputError, LogTampered
from vertikal.files import disk_error, write_whole
from vertikal.records import from_json

FIRST = "0" * 64
"""The digest before the first line."""

Fact = str | int | float | bool | None | list[str] | dict[str, int]
"""A fact about an event: a name, a number, a digest. Never data, ids or keys."""


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event."""

    number: int
    time: str
    party: str
    event: str
    facts: dict[str, Fact]
    previous: str
    digest: str = ""

    def with_digest(self) -> Line:
        """Return this line with its digest."""
        return msgspec.structs.replace(self, digest=self._compute())

    def is_intact(self) -> bool:
        return self.digest == self._compute()

    def _compute(self) -> str:
        bare = msgspec.to_builtins(msgspec.structs.replace(self, digest=""))
        return hashlib.sha256(_canonical(bare)).hexdigest()


@dataclass(frozen=True)
class Head:
    """The last line's number and digest: all that has to be kept elsewhere."""

    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Head:
        number, _, digest = text.partition(":")
        if not number.isdigit() or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise InputError.of("head", "NUMBER:DIGEST as `vertikal audit head` prints it", text)
        return cls(int(number), digest)


class AuditLog:
    """The log of one party; several threads and processes may record to it."""

    def __init__(self, path: Path, party: str) -> None:
        self._path = path
        self._party = party
        self.events: Counter[str] = Counter()
        """Lines that this process has recorded, by their event."""

    def record(self, event: str, **facts: Fact) -> Line:
        """Append one line and wait until the disk has it."""
        try:
            with _locked(self._path) as number:
                before = self._mend(number)
                line = Line(
                    before.number + 1,
                    datetime.now(UTC).isoformat(timespec="milliseconds"),
                    self._party,
                    event,
                    facts,
                    before.digest,
                ).with_digest()
                _append(number, msgspec.json.encode(line) + b"\n")
                write_whole(_head_file(self._path), f"{line.number}:{line.digest}".encode())
        except OSError as error:
            raise disk_error(self._path, error) from None
        self.events[event] += 1
        return line

    def _mend(self, number: int) -> Head:
        """Return the head, after removing a last line that a crash left unfinished."""
        raw = _tail(number)
        whole, _, torn = raw.rpartition(b"\n")
        if torn:
            os.ftruncate(number, os.fstat(number).st_size - len(torn))
        if not whole:
            return Head(0, FIRST)
        last = _parse(whole.rpartition(b"\n")[2], self._path, None)
        return Head(last.number, last.digest)


def read(path: Path) -> Iterator[Line]:
    """Read the lines without checking the chain.

    A last line without its end is just being written, or a crash left it so: it does not count.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n"):
                    return
                yield _parse(raw, path, number)
    except OSError as error:
        raise InputError(f"audit log {path.name!r} cannot be read: {error.strerror}") from None


def read_on(path: Path, offset: int) -> tuple[list[Line], int]:
    """Read the whole lines from a byte on, without checking the chain; also where to go on."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            raw = file.read()
    except OSError as error:
        raise InputError(f"audit log {path.name!r} cannot be read: {error.strerror}") from None
    whole = raw[: raw.rfind(b"\n") + 1]
    return [_parse(one, path, None) for one in whole.splitlines()], offset + len(whole)


def verify(path: Path, anchor: Head | None = None) -> Head:
    """Follow the chain from the first line; LogTampered at the first that does not fit.

    With ``anchor``, a head from an earlier day, the log must also contain exactly that line.
    """
    kept = _kept_head(path)
    head, met = Head(0, FIRST), anchor is None
    for place, line in enumerate(read(path), start=1):
        if line.number != place:
            raise _tampered(
                path, place, f"has the number {line.number}: lines are missing or moved"
            )
        if line.previous != head.digest:
            raise _tampered(path, place, "does not follow from the line before it")
        if not line.is_intact():
            raise _tampered(path, place, "was altered: its digest does not fit its content")
        head = Head(line.number, line.digest)
        if anchor is not None and line.number == anchor.number:
            if head != anchor:
                raise _tampered(path, place, "is not the line of the given head: written anew")
            met = True
    if not met:
        raise LogTampered(
            f"audit log {path.name!r} ends at line {head.number}, before the given head: lines "
            "were cut from its end"
        )
    if kept is not None and kept.number > head.number:
        raise LogTampered(
            f"audit log {path.name!r} ends at line {head.number}, its head file knows "
            f"{kept.number}: lines were cut from its end"
        )
    return head


def _kept_head(path: Path) -> Head | None:
    """Read the head file; call it before reading the log, since a service goes on writing."""
    try:
        return Head.parse(_head_file(path).read_text())
    except FileNotFoundError:
        return None


def _tampered(path: Path, place: int, why: str) -> LogTampered:
    return LogTampered(
        f"audit log {path.name!r}, line {place} {why}; the lines before it hold, those from it on "
        "do not"
    )


def _parse(raw: bytes, path: Path, place: int | None) -> Line:
    try:
        return from_json(raw, Line)
    except msgspec.DecodeError as error:
        where = "last line" if place is None else f"line {place}"
        raise LogTampered(
            f"audit log {path.name!r}, {where} is no line of a log: {error}"
        ) from None


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _head_file(path: Path) -> Path:
    return path.with_name(path.name + ".head")


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield number
    finally:
        os.close(number)


def _append(number: int, raw: bytes) -> None:
    """Write the whole line or leave nothing of it: a full disk may take half a line."""
    size = os.fstat(number).st_size
    try:
        if os.write(number, raw) < len(raw):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(number)
    except OSError:
        os.ftruncate(number, size)
        raise


def _tail(number: int) -> bytes:
    """Read the end of the file, with at least one whole line in it if there is one."""
    size, width = os.fstat(number).st_size, 1 << 12
    while True:
        raw = os.pread(number, width, max(0, size - width))
        if width >= size or raw.count(b"\n") >= 2:
            return raw
        width *= 2
