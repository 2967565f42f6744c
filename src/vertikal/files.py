"""Files of a party's store: readable by their owner only, and whole or not there at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from vertikal.errors import InputError

PROBE = 1 << 20
"""Bytes that a store must have room for, before a run that found it full is begun again."""


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's names, and no longer has those that were removed."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def private_folder(path: Path) -> Path:
    """This folder, made if it is not there; refuses one that others can look into."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o077
    except OSError as error:
        if is_full(error):
            raise disk_error(path, error) from None
        raise InputError(f"store {path.name!r} cannot be used: {error.strerror}") from None
    if mode:
        raise InputError(
            f"store {path.name!r} must be open to its owner only, got mode "
            f"{path.stat().st_mode & 0o777:o}; run `chmod 700` on it"
        )
    return path


def write_whole(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file beside and move it over: a crash leaves the old one or the new one.

    ``durable`` waits until the disk has it, so that it also survives a loss of power.
    """
    try:
        move_over(path, content, durable=durable)
    except OSError as error:
        raise disk_error(path, error) from None


def move_over(path: Path, content: bytes, *, durable: bool = True) -> None:
    """As `write_whole`, for files outside a store: what fails is an OSError."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
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
    """Write a file that is not there yet, whole and on the disk; False if there is one already.

    Of two that try at once one succeeds, and a crash leaves no part of it under this name.
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


def disk_error(path: Path, error: OSError) -> InputError:
    """What to say, to the owner only, when a file of the store could not be written."""
    if is_full(error):
        return DiskFull(
            f"the disk of the store is full: {str(path)!r} was not written; free some space there, "
            "and the job goes on by itself from its last checkpoint"
        )
    return InputError(f"{path.name!r} of the store cannot be written: {error.strerror}")


def is_full(error: BaseException) -> bool:
    """Whether a write failed for want of room: on the disk, of a quota, or of a limit on files."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskFull(InputError):
    """No room for a file of the store; what was there before is untouched."""


class Room:
    """Whether a store has room again, after a write that found none: runs wait for it."""

    def __init__(self, folder: Path) -> None:
        self._probe = folder / "room"
        self.full = False

    def regained(self) -> bool:
        """Try a write, if the last one failed for want of room."""
        if self.full:
            try:
                write_whole(self._probe, bytes(PROBE))
                self._probe.unlink()
            except (DiskFull, OSError):
                return False
            self.full = False
        return True
