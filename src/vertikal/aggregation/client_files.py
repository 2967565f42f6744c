"""Files of a client's numbers: ratings as items one a line, or columns of whole numbers as CSV."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError

Array = npt.NDArray[Any]

LARGEST_FILE = 1 << 28


def read_ratings(path: Path) -> list[str]:
    """Read the items that a user has rated, one a line; empty lines are nothing."""
    lines = (line.strip() for line in _text(path, "ratings").splitlines())
    return [line for line in lines if line]


def read_columns(path: Path) -> Array:
    """Read columns of whole numbers: a line of names, then one line a row."""
    lines = list(csv.reader(_text(path, "columns").splitlines()))
    if len(lines) < 2:
        raise InputError.of(f"columns file {path.name!r}", "a line of names and rows", len(lines))
    width = len(lines[0])
    values = np.zeros((len(lines) - 1, width), np.int64)
    for number, line in enumerate(lines[1:], 2):
        try:
            values[number - 2] = [int(cell) for cell in line]
        except (ValueError, OverflowError):
            raise InputError(
                f"columns file {path.name!r}, line {number}: {width} whole numbers must stand "
                f"there, got {','.join(line)[:80]!r}"
            ) from None
    return values


def _text(path: Path, what: str) -> str:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError.of(f"{what} file", f"at most {LARGEST_FILE} bytes", path.name)
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{what} file {path.name!r} cannot be read: {error}") from None
