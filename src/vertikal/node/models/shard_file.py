"""A shard as one file: msgpack, arrays as dtype, shape and bytes; readable by its owner only.

For experiments with `vertikal run`; between organisations shards lie in the model store.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vertikal.algorithms.algorithm import Algorithm
from vertikal.errors import InputError
from vertikal.files import move_over
from vertikal.records import convert, from_msgpack

_DTYPES = ("<f8", "<u8")


class _Array(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    shard: msgspec.Raw


def write_shard(shard: Any, path: Path, algorithm: Algorithm[Any, Any]) -> None:
    """Write a shard; an older one of this name is replaced, once this one is whole."""
    packed = msgspec.Raw(msgspec.msgpack.encode(algorithm.to_store(shard), enc_hook=_packed))
    content = msgspec.msgpack.encode(_File(type(shard).__name__, packed))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        move_over(path, content)
    except OSError as error:
        raise InputError(f"shard file {path.name!r} cannot be written: {error.strerror}") from None


def read_shard(path: Path, algorithm: Algorithm[Any, Any]) -> Any:
    """The shard of this algorithm in this file."""
    kind = algorithm.shard_type
    try:
        content = from_msgpack(path.read_bytes(), _File)
        if content.kind != kind.__name__:
            raise ValueError(f"it is a {content.kind!r}, not a {kind.__name__!r}")
        return from_msgpack(content.shard, kind, dec_hook=_unpacked)
    except OSError as error:
        raise InputError(f"shard file {path.name!r} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"shard file {path.name!r} is not a shard: {error}") from None


def _packed(array: Any) -> _Array:
    dtype = array.dtype.newbyteorder("<").str
    return _Array(dtype, array.shape, np.ascontiguousarray(array, dtype).tobytes())


def _unpacked(kind: Any, content: Any) -> Any:
    packed = convert(content, _Array)
    if packed.dtype not in _DTYPES:
        raise ValueError(f"an array of {packed.dtype!r}")
    return np.frombuffer(packed.data, packed.dtype).reshape(packed.shape).copy()
