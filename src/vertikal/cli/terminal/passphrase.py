"""The passphrase of a party's key: from the environment, from a file, or typed in a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from vertikal.errors import InputError

VARIABLE = "VERTIKAL_PASSPHRASE"


def passphrase(key: Path, file: Path | None = None) -> bytes | None:
    """Obtain the passphrase that opens this key; None if it needs none, or nobody can be asked.

    The environment comes first, then ``file``, then a question in the terminal. A wrong passphrase
    is found by whoever opens the key.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return given.encode()
    if file is not None:
        return _read(file)
    from vertikal.secure.keys.identity import is_locked

    if is_locked(key) and sys.stdin.isatty():
        return str(click.prompt(f"Passphrase of {key.name}", hide_input=True, err=True)).encode()
    return None


def _read(file: Path) -> bytes:
    """Read the first line of a file that only its owner can read."""
    try:
        mode = file.stat().st_mode & 0o777
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise InputError(
            f"passphrase_file {file.name!r} cannot be read: {error.strerror}"
        ) from None
    if mode & 0o077:
        raise InputError(
            f"passphrase_file {file.name!r} must be readable by its owner only, got mode {mode:o}; "
            "run `chmod 600` on it"
        )
    if not lines or not lines[0]:
        raise InputError(
            f"passphrase_file {file.name!r} must have the passphrase in its first line"
        )
    return lines[0]
