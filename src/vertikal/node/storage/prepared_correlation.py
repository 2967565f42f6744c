"""A correlation prepared ahead of a run, as a file that serves one run.

The file is a sequence of frames (`mesh.wire`): a record that says which job it is for and holds the
dealer's keys, then the arrays in the order of sending. It is readable by its owner only.

It is used once by construction: a run first renames the file, which only one process can do, then
opens it, removes the name and waits until the disk has that. What fails after that is not tried
again with the same numbers.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Algorithm
from vertikal.errors import InputError, WireError
from vertikal.files import sync_folder
from vertikal.mesh import wire
from vertikal.party.party import digest
from vertikal.records import convert
from vertikal.secure.dealing_ahead import DealingAhead
from vertikal.secure.hidden.dealing import draw_keys
from vertikal.version import __version__

Array = npt.NDArray[Any]


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Head of the file: the job that it is for, and the dealer's keys."""

    version: str
    settings: str
    rows: int
    keys: dict[str, bytes]


def write_correlation(path: Path, algorithm: Algorithm[Any, Any], settings: Any, rows: int) -> int:
    """Prepare the dealer's part of one training run; returns the size of the file."""
    roles = algorithm.prepared_roles(settings)
    if path.exists():
        raise InputError(f"{path.name!r} is there already; a correlation is not written over")
    keys = draw_keys(roles)
    head = _Head(__version__, digest(settings), rows, keys)
    part = path.with_name(path.name + ".part")
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InputError(f"{part.name!r} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(number, "wb") as file:
            _write(file, roles.dealer, roles.helper, "head", msgspec.structs.asdict(head))

            def keep(step: str, values: Array) -> None:
                _write(file, roles.dealer, roles.helper, step, values)

            algorithm.prepare(DealingAhead(roles, keys, keep), settings, rows)
            size = file.tell()
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return size


def claim_correlation(path: Path, settings: Any, rows: int) -> CorrelationFile:
    """Take the file for this run and for no other; a file of another job is left alone."""
    try:
        with path.open("rb") as file:
            head = _head(file, path)
        for what, prepared, wanted in (
            ("version", head.version, __version__),
            ("settings (digest)", head.settings, digest(settings)),
            ("number of rows", head.rows, rows),
        ):
            if prepared != wanted:
                raise InputError(
                    f"correlation {path.name!r} was prepared for another job: its {what} is "
                    f"{prepared!r}, this job's {wanted!r}; prepare one for this job"
                )
        claimed = path.with_name(f".{path.name}.{secrets.token_hex(4)}.used")
        path.rename(claimed)
        taken = claimed.open("rb")
        try:
            claimed.unlink()
            # A loss of power must not bring the name back once its masks have been used.
            sync_folder(path.parent)
        except BaseException:
            taken.close()
            raise
    except OSError as error:
        raise InputError(
            f"correlation {path.name!r} cannot be taken: {error.strerror}; each is used once, "
            "prepare another"
        ) from None
    return CorrelationFile(taken, path)


class CorrelationFile:
    """The arrays of a claimed file, in their order."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._head = _head(file, path)

    @property
    def keys(self) -> Mapping[str, bytes]:
        return self._head.keys

    def take(self, step: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """The next array, which must be of this step, shape and dtype; owned by the caller."""
        frame = _read(self._file, self._path)
        payload = frame.payload()
        header = frame.header
        wanted = (step, shape, np.dtype(dtype))
        if not isinstance(payload, np.ndarray) or (
            (header.tag, payload.shape, payload.dtype) != wanted
        ):
            raise InputError(
                f"correlation {self._path.name!r} has {header.tag!r} {header.shape} where the run "
                f"needs {step!r} {shape}; prepare one for this job"
            )
        return payload.copy()

    def close(self) -> None:
        self._file.close()


def _head(file: BinaryIO, path: Path) -> _Head:
    try:
        return convert(_read(file, path).payload(), _Head)
    except msgspec.ValidationError as error:
        raise InputError(f"{path.name!r} is no correlation: {error}") from None


def _read(file: BinaryIO, path: Path) -> wire.Frame:
    def exactly(size: int) -> bytes:
        found = file.read(size)
        if len(found) < size:
            raise InputError(f"correlation {path.name!r} ends too early; prepare another")
        return found

    try:
        return wire.read(exactly)
    except WireError as error:
        raise InputError(f"{path.name!r} is no correlation: {error}") from None


def _write(file: BinaryIO, sender: str, receiver: str, tag: str, payload: Any) -> None:
    prefix, body = wire.frame(sender, receiver, tag, payload).buffers()
    file.write(prefix)
    file.write(body)
