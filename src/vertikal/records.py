"""Records of known types, from plain values and from bytes, in any thread.

msgspec learns a type when it first reads one, and must not do so in two threads at once: the second
finds the type half learnt, and the whole process ends. Here types are learnt one at a time, each
before anything of it is read. All of Vertikal reads its records here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from vertikal.errors import InputError

T = TypeVar("T")

Hook = Callable[[type, Any], Any]
"""Makes a value of a type that msgspec does not know from what stands in its place."""

_lock = threading.Lock()
_learnt: set[Any] = set()


def convert(
    value: Any, kind: type[T], *, dec_hook: Hook | None = None, str_keys: bool = False
) -> T:
    """Make a ``kind`` of ``value``, which consists of dicts, lists and numbers."""
    _learn(kind)
    return msgspec.convert(value, kind, dec_hook=dec_hook, str_keys=str_keys)


def from_json(raw: bytes | str, kind: type[T]) -> T:
    """Read a ``kind`` that is written as JSON."""
    _learn(kind)
    return msgspec.json.decode(raw, type=kind)


def from_msgpack(raw: bytes, kind: type[T], *, dec_hook: Hook | None = None) -> T:
    """Read a ``kind`` that is written as msgpack."""
    _learn(kind)
    return msgspec.msgpack.decode(raw, type=kind, dec_hook=dec_hook)


def msgpack_reader(kind: type[T]) -> Callable[[bytes | memoryview], T]:
    """Make a `from_msgpack` of one type, for records that are read often."""
    with _lock:
        return msgspec.msgpack.Decoder(kind).decode


class _Formatted(msgspec.Struct, frozen=True):
    """Any record that says its format; one that does not has the first."""

    format: int = 1


def check_format(raw: bytes, newest: int, what: str, *, packed: bool = False) -> None:
    """Refuse a record of a later format than ``newest``, whatever fields it has.

    ``raw`` is JSON, or msgpack if it is ``packed``. What is no record at all is left to its reader.
    """
    try:
        found = (from_msgpack if packed else from_json)(raw, _Formatted).format
    except (msgspec.DecodeError, ValueError):
        return
    if found > newest:
        raise InputError(
            f"{what} has format {found}, this release reads formats up to {newest}; install the "
            "release that wrote it, or a later one"
        )


def json_schemas(
    kinds: Sequence[Any], reference: str
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Describe types by JSON schemas: one per type, and the records that these refer to by name.

    ``reference`` is how a schema refers to a record, with ``{name}`` in it.
    """
    with _lock:
        return msgspec.json.schema_components(kinds, ref_template=reference)


def _learn(kind: Any) -> None:
    if kind not in _learnt:
        with _lock:
            msgspec.msgpack.Decoder(kind)
        _learnt.add(kind)
