"""A shard as a file: msgpack, arrays as dtype, shape and bytes; readable by its owner only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vertikal.algorithms.avfkam_settings import AvfkamSettings
from vertikal.algorithms.settings import FdsklSettings
from vertikal.algorithms.shard import Shard, Training
from vertikal.data.prepare import Scaling
from vertikal.errors import InputError

_FLOAT = "<f8"
_WORD = "<u8"


class _Array(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    shape: tuple[int, ...]
    data: bytes


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    party: str
    settings: FdsklSettings | AvfkamSettings
    columns: tuple[str, ...]
    scaling: Scaling
    bandwidth: float
    seed: bytes
    coefficients: _Array | None
    coefficient_share: _Array | None
    landmarks: dict[str, _Array]
    constant: _Array
    unit: _Array
    threshold: float
    training: Training


def write_shard(shard: Shard, path: Path) -> None:
    """Write a shard; an older one of this name is replaced."""
    content = _File(
        shard.party,
        shard.settings,
        shard.columns,
        shard.scaling,
        shard.bandwidth,
        shard.seed,
        None if shard.coefficients is None else _packed(shard.coefficients),
        None if shard.coefficient_share is None else _packed(shard.coefficient_share, _WORD),
        {owner: _packed(points) for owner, points in shard.landmarks.items()},
        _packed(shard.constant),
        _packed(shard.unit),
        shard.threshold,
        shard.training,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(msgspec.msgpack.encode(content))


def read_shard(path: Path) -> Shard:
    """The shard in this file."""
    try:
        content = msgspec.msgpack.decode(path.read_bytes(), type=_File)
        return Shard(
            content.party,
            content.settings,
            content.columns,
            content.scaling,
            content.bandwidth,
            content.seed,
            None if content.coefficients is None else _unpacked(content.coefficients),
            None
            if content.coefficient_share is None
            else _unpacked(content.coefficient_share, _WORD),
            {owner: _unpacked(points) for owner, points in content.landmarks.items()},
            _unpacked(content.constant),
            _unpacked(content.unit),
            content.threshold,
            content.training,
        )
    except OSError as error:
        raise InputError(f"shard file {path.name!r} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"shard file {path.name!r} is not a shard: {error}") from None


def _packed(array: Any, dtype: str = _FLOAT) -> _Array:
    return _Array(array.shape, np.ascontiguousarray(array, dtype).tobytes())


def _unpacked(packed: _Array, dtype: str = _FLOAT) -> Any:
    return np.frombuffer(packed.data, dtype).reshape(packed.shape).copy()
