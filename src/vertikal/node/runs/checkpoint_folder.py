"""Checkpoints of a job in a folder, so that a run begins where the last one ended.

There is one folder per job, until the job is done. It holds the party's secret of this job, the
common order of rows, finished blocks, and lists of what was opened. A file is whole or not there. A
block whose digest does not fit counts as not there. A list ends before its first entry whose digest
does not fit; in a list of what was opened, such an entry is refused if others follow it, since what
they stand for was opened too. Nothing of all this leaves the party.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vertikal.errors import InputError
from vertikal.files import disk_error, private_folder, sync_folder, write_whole
from vertikal.party.checkpoints import OPENED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]

CHECKPOINTS = "checkpoints"
SECRET = "secret"
ROWS = "rows"
MARKS = "marks"
SPLIT = "split"
_DIGEST = 32
_BLOCK = re.compile(r"-\d{6}")
_HEAD = struct.Struct("<Q32s")


def checkpoints_of(store: Path, job: str) -> CheckpointFolder:
    """The checkpoints of the job with this digest in a party's store."""
    return CheckpointFolder(private_folder(store / CHECKPOINTS) / job[:16])


def all_checkpoints(store: Path) -> list[CheckpointFolder]:
    """List the checkpoints of all jobs in a party's store."""
    return [CheckpointFolder(path) for path in (store / CHECKPOINTS).glob("*")]


class CheckpointFolder:
    """The folder with the checkpoints of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = private_folder(folder)
        self._ends: dict[str, int] = {}

    def secret(self, draw: Callable[[], bytes]) -> bytes:
        """The party's 32 bytes for this job: drawn once, the same in every run of it."""
        known = self.read(SECRET)
        if known is None:
            known = draw()
            self.write(SECRET, known)
        return known

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        digest = hashlib.sha256(content).digest()
        write_whole(self.folder / name, digest + content, durable=durable)

    def read(self, name: str) -> bytes | None:
        """Read what was written under this name; None if nothing was, or if it is damaged."""
        try:
            raw = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        digest, content = raw[:_DIGEST], raw[_DIGEST:]
        return content if hashlib.sha256(content).digest() == digest else None

    # The rest is the interface that programs see (`party.checkpoints`).

    def saved_blocks(self, name: str) -> int:
        """Count the blocks of this name that are at hand, from the first on."""
        number = 0
        while self.read(f"{name}-{number:06}") is not None:
            number += 1
        return number

    def save_block(self, name: str, number: int, block: Any) -> None:
        """Keep a finished block; a crash of the machine, not of the process, may lose it."""
        self.write(f"{name}-{number:06}", block.tobytes(), durable=False)

    def restore_block(self, name: str, number: int, into: Any) -> None:
        """Fill an array with a block that was kept."""
        import numpy as np

        content = self.read(f"{name}-{number:06}") or b""
        into[...] = np.frombuffer(content, into.dtype).reshape(into.shape)

    def append(self, name: str, entry: bytes, *, durable: bool = False) -> None:
        """Add to a list; what a crash left unfinished at its end is written over."""
        path = self._list(name)
        if name not in self._ends:
            self._ends[name] = self._scan(name)[1]
        raw = _HEAD.pack(len(entry), hashlib.sha256(entry).digest()) + entry
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                # What is left of a longer entry would stand after this one.
                os.ftruncate(number, self._ends[name])
                if os.pwrite(number, raw, self._ends[name]) < len(raw):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if durable:
                    os.fsync(number)
                    if not self._ends[name]:
                        # A new list, maybe of a new job: their names too.
                        sync_folder(self.folder)
                        sync_folder(self.folder.parent)
            finally:
                os.close(number)
        except OSError as error:
            raise disk_error(path, error) from None
        self._ends[name] += len(raw)

    def entries(self, name: str) -> list[bytes]:
        """Read all entries of a list, in order."""
        return self._scan(name)[0]

    def _scan(self, name: str) -> tuple[list[bytes], int]:
        """Read the whole entries of a list, and the place where the last of them ends."""
        try:
            raw = self._list(name).read_bytes()
        except FileNotFoundError:
            raw = b""
        entries, place = [], 0
        while place + _HEAD.size <= len(raw):
            size, digest = _HEAD.unpack_from(raw, place)
            entry = raw[place + _HEAD.size : place + _HEAD.size + size]
            if hashlib.sha256(entry).digest() != digest:
                break
            entries.append(entry)
            place += _HEAD.size + size
        if name.startswith(OPENED) and not _torn(raw[place:]):
            raise InputError(
                f"what this job has opened cannot be counted any more: {self._list(name).name!r} "
                f"of its checkpoints is damaged after entry {len(entries)}, and not by a crash; "
                "restore it from a copy, or submit the job again, so that it is approved anew"
            )
        return entries, place

    def _list(self, name: str) -> Path:
        return self.folder / f"{name}.list"

    def forget_work(self) -> None:
        """Forget blocks and answers; what was opened stays counted."""
        for path in self.folder.iterdir():
            if path.name not in (SECRET, ROWS, MARKS, SPLIT) and not path.name.startswith(OPENED):
                path.unlink()
        self._ends.clear()

    def forget_part(self, part: str) -> None:
        """Forget blocks and answers of one part of the job (`PartOfCheckpoints`) that is done."""
        for path in self.folder.glob(f"*.{part}*"):
            ending = path.name.rpartition(f".{part}")[2]
            done = ending == ".list" or _BLOCK.fullmatch(ending)
            if done and not path.name.startswith(OPENED):
                path.unlink()
                self._ends.pop(path.name.removesuffix(".list"), None)

    def clear(self) -> None:
        """Forget the job."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _torn(rest: bytes) -> bool:
    """Tell if this may be what a crash leaves of the last entry: cut off, or in part unwritten.

    Otherwise it is a damaged entry with others after it.
    """
    if len(rest) < _HEAD.size or not rest.strip(b"\0"):
        return True
    if _HEAD.size + _HEAD.unpack_from(rest)[0] < len(rest):
        return False
    # The damage may be in the length itself: then whole entries are still found further on.
    return not any(_whole(rest, place) for place in range(1, len(rest) - _HEAD.size + 1))


def _whole(raw: bytes, place: int) -> bool:
    size, digest = _HEAD.unpack_from(raw, place)
    start = place + _HEAD.size
    if size > len(raw) - start:
        return False
    return bool(hashlib.sha256(raw[start : start + size]).digest() == digest)
