"""The wire format: a typed header, then the payload as raw bytes.

    2 bytes  magic "VK"
    2 bytes  protocol version, big-endian
    4 bytes  length of the header, big-endian
    8 bytes  length of the payload, big-endian
    header   msgpack map, schema-checked, unknown fields refused
    payload  the array's bytes in C order, little-endian; or a msgpack map for a structured message

Both lengths are compared with their caps, and an array's length with its dtype and shape, before
anything is allocated. Dtypes come from an allow-list; no object is ever built by name.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.errors import WireError
from vertikal.records import msgpack_reader

PROTOCOL_VERSION = 1
MAGIC = b"VK"
PREFIX = struct.Struct(">2sHIQ")

MAX_HEADER = 4096
MAX_RECORD = 1 << 20
MAX_PAYLOAD = 1 << 34
MAX_DIMENSIONS = 4
MAX_NAME = 64
MAX_TAG = 200

DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64"),
    )
}
"""The dtypes that may travel."""


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The header of every payload."""

    sender: str
    receiver: str
    tag: str
    kind: Literal["array", "record"]
    dtype: str = ""
    shape: tuple[int, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode_header = msgpack_reader(Header)
_decode_record = msgpack_reader(dict[str, Any])


@dataclass(frozen=True)
class Frame:
    """A checked header with its payload, still as bytes or as the array they stand for."""

    header: Header
    header_bytes: bytes
    body: npt.NDArray[Any] | bytes

    @property
    def size(self) -> int:
        """Bytes of this frame on the wire."""
        return PREFIX.size + len(self.header_bytes) + self.payload_size

    @property
    def payload_size(self) -> int:
        return self.body.nbytes if isinstance(self.body, np.ndarray) else len(self.body)

    def payload(self) -> npt.NDArray[Any] | dict[str, Any]:
        """The message: a read-only array, or a fresh dictionary."""
        if isinstance(self.body, np.ndarray):
            return self.body
        try:
            return _decode_record(self.body)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise WireError(
                f"message of {self.header.sender} under {self.header.tag!r}: {error}"
            ) from None

    def buffers(self) -> tuple[bytes, memoryview]:
        """The bytes on the wire: prefix with header, and the payload without a copy."""
        prefix = PREFIX.pack(MAGIC, PROTOCOL_VERSION, len(self.header_bytes), self.payload_size)
        if isinstance(self.body, np.ndarray):
            return prefix + self.header_bytes, self.body.reshape(-1).view(np.uint8).data
        return prefix + self.header_bytes, memoryview(self.body)


def frame(
    sender: str, receiver: str, tag: str, payload: npt.NDArray[Any] | Mapping[str, Any]
) -> Frame:
    """Make a frame of ``payload``; refuse what `read` would refuse at the other end."""
    if isinstance(payload, np.ndarray):
        name = payload.dtype.name
        if name not in DTYPES or isinstance(payload, np.ma.MaskedArray):
            raise WireError(
                f"{tag!r}: {type(payload).__name__} of {payload.dtype} may not travel; allowed: "
                f"plain arrays of {list(DTYPES)}"
            )
        header = Header(sender, receiver, tag, "array", name, payload.shape)
        array = np.ascontiguousarray(payload, DTYPES[name]).reshape(payload.shape).view()
        array.flags.writeable = False
        body: npt.NDArray[Any] | bytes = array
    else:
        header = Header(sender, receiver, tag, "record")
        try:
            body = _encode(dict(payload))
            # What the other end could not read is not written.
            _decode_record(body)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise WireError(f"{tag!r}: {error}") from None
    size = body.nbytes if isinstance(body, np.ndarray) else len(body)
    check(header, size)
    return Frame(header, _encode(header), body)


def array_size(
    sender: str, receiver: str, tag: str, dtype: npt.DTypeLike, shape: tuple[int, ...]
) -> int:
    """Return the bytes of the frame of such an array."""
    kind = np.dtype(dtype)
    header = Header(sender, receiver, tag, "array", kind.name, shape)
    return PREFIX.size + len(_encode(header)) + math.prod(shape) * kind.itemsize


def check(header: Header, payload_size: int) -> None:
    """Refuse names, tags, dtypes, shapes and lengths outside the protocol's limits."""
    for field, text, limit in (
        ("sender", header.sender, MAX_NAME),
        ("receiver", header.receiver, MAX_NAME),
        ("tag", header.tag, MAX_TAG),
    ):
        if not 0 < len(text) <= limit or not text.isprintable():
            raise WireError(
                f"{field} must have 1 to {limit} printable characters, got {text[:80]!r}"
            )
    if header.kind == "record":
        if header.dtype or header.shape:
            raise WireError(f"{header.tag!r}: a structured message has no dtype and no shape")
        if payload_size > MAX_RECORD:
            raise WireError(
                f"{header.tag!r}: structured message of {payload_size} bytes, at most {MAX_RECORD}"
            )
        return
    if header.dtype not in DTYPES:
        raise WireError(f"{header.tag!r}: dtype {header.dtype!r} is not allowed")
    itemsize = DTYPES[header.dtype].itemsize
    # An axis of length zero must not hide others that no array can have.
    extent = math.prod(max(1, n) for n in header.shape) * itemsize
    if (
        len(header.shape) > MAX_DIMENSIONS
        or any(n < 0 for n in header.shape)
        or (0 in header.shape and extent > MAX_PAYLOAD)
    ):
        raise WireError(f"{header.tag!r}: shape {header.shape} is not allowed")
    expected = math.prod(header.shape) * itemsize
    if expected != payload_size:
        raise WireError(
            f"{header.tag!r}: {header.dtype} {header.shape} has {expected} bytes, "
            f"got {payload_size}"
        )
    if payload_size > MAX_PAYLOAD:
        raise WireError(f"{header.tag!r}: {payload_size} bytes, at most {MAX_PAYLOAD} are allowed")


def read(read_exactly: Callable[[int], bytes]) -> Frame:
    """Read one frame; ``read_exactly(n)`` returns n bytes or raises.

    It is asked for the payload only after header, shape and length have been checked.
    """
    header, header_bytes, payload_size = read_head(read_exactly)
    return finish(header, header_bytes, read_exactly(payload_size))


def read_head(read_exactly: Callable[[int], bytes]) -> tuple[Header, bytes, int]:
    """Read and check the header: the header, its bytes, the length of the payload."""
    magic, version, header_size, payload_size = PREFIX.unpack(read_exactly(PREFIX.size))
    if magic != MAGIC:
        raise WireError(f"not a frame: starts with {magic!r}")
    if version != PROTOCOL_VERSION:
        raise WireError(f"protocol version {version}, this side speaks {PROTOCOL_VERSION}")
    if header_size > MAX_HEADER:
        raise WireError(f"header of {header_size} bytes, at most {MAX_HEADER} are allowed")
    header_bytes = read_exactly(header_size)
    try:
        header = _decode_header(header_bytes)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(f"header: {error}") from None
    check(header, payload_size)
    return header, header_bytes, payload_size


def finish(header: Header, header_bytes: bytes, body: bytes | memoryview) -> Frame:
    """Make the frame of a checked header and a payload of the length that it announced."""
    if header.kind == "record":
        return Frame(header, header_bytes, bytes(body))
    array = np.frombuffer(body, DTYPES[header.dtype]).reshape(header.shape)
    if not array.flags.aligned:
        array = array.copy()
    array.flags.writeable = False
    return Frame(header, header_bytes, array)
