"""Files that a crash leaves whole, old or new, and that only their owner can read.

Stores, budget files and checkpoints are written through this module.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import tempfile
from pathlib import Path
from typing import IO

from vertikal.errors import DiskFull, InputError, VertikalError

PROBE = 1 << 20
"""Bytes that a full store must have room for again before its jobs go on."""


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of the files that were added to a folder, or removed."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def private_folder(path: Path) -> Path:
    """Make a folder unless it is there; refuse one that anybody but this user can look into.

    Within it nobody else can put anything, such as a link that leads what is written elsewhere. A
    link to the folder itself may be this user's, or root's: another's could lead anywhere.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder, link = path.stat(), path.lstat()
    except OSError as error:
        if is_full(error):
            raise disk_error(path, error) from None
        raise InputError(f"store {path.name!r} cannot be used: {error.strerror}") from None
    me = os.geteuid()
    if folder.st_uid != me or link.st_uid not in (me, 0):
        other = link.st_uid if folder.st_uid == me else folder.st_uid
        raise InputError(
            f"store {path.name!r} must belong to the user that uses it, number {me}, got {other}; "
            "run `chown` on it, or choose another folder"
        )
    if folder.st_mode & 0o077:
        raise InputError(
            f"store {path.name!r} must be open to its owner only, got mode "
            f"{folder.st_mode & 0o777:o}; run `chmod 700` on it"
        )
    return path


def lock_file(path: Path, refusal: str) -> IO[bytes]:
    """Lock a file, made if need be, until it is closed or this process ends.

    Where another process has it InputError says ``refusal``.
    """
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(refusal) from None
    return file


def write_whole(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file beside the old one and move it over: a crash leaves the old or the new one.

    With ``durable`` wait until the disk has it, so that it also survives a loss of power.
    """
    try:
        move_over(path, content, durable=durable)
    except OSError as error:
        raise disk_error(path, error) from None


def move_over(path: Path, content: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Do as `write_whole`, for files outside a store: a failure is an OSError.

    The umask takes its bits from ``mode``.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(number, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(fresh, path)
        if durable:
            sync_folder(path.parent)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def write_new(path: Path, content: bytes) -> bool:
    """Write a file unless one is there already (False); wait until the disk has it.

    Of two processes that try at once one succeeds. A crash leaves no half of it under this name.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_whole(fresh, content)
        try:
            os.link(fresh, path)
        finally:
            fresh.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        return False
    except OSError as error:
        raise disk_error(path, error) from None
    return True


def nameless_file(folder: Path) -> IO[bytes]:
    """Open a file in ``folder`` that has no name: it is gone with the process."""
    try:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError as error:
        raise disk_error(folder, error) from None


def disk_error(path: Path, error: OSError) -> VertikalError:
    """Turn a failed write into an error that names the file; it is meant for the owner only."""
    if is_full(error):
        return DiskFull(
            f"the disk of the store is full: {str(path)!r} was not written; free some space there, "
            "and the job goes on by itself from its last checkpoint"
        )
    return InputError(f"{path.name!r} of the store cannot be written: {error.strerror}")


def is_full(error: BaseException) -> bool:
    """Tell if a write failed because the disk, a quota or a limit on file sizes left no room."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Room:
    """Memory of a full disk: runs wait until the store has room again."""

    def __init__(self, folder: Path) -> None:
        self._probe = folder / "room"
        self.full = False

    def regained(self) -> bool:
        """Try a write if the last one found no room; True if there is room now."""
        if self.full:
            try:
                write_whole(self._probe, bytes(PROBE))
                self._probe.unlink()
            except (DiskFull, OSError):
                return False
            self.full = False
        return True
