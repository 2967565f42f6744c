"""Files of a party's store: readable by their owner only, and whole or not there at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from vertikal.errors import InputError


def private_folder(path: Path) -> Path:
    """This folder, made if it is not there; refuses one that others can look into."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o077
    except OSError as error:
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
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise disk_error(path, error) from None


def disk_error(path: Path, error: OSError) -> InputError:
    """What to say when a file of the store could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(
            f"the disk of the store is full: {path.name!r} was not written; free some space, and "
            "the job goes on from its last checkpoint"
        )
    return InputError(f"{path.name!r} of the store cannot be written: {error.strerror}")


class DiskFull(InputError):
    """No room for a file of the store; what was there before is untouched."""
