"""Packets, the units that travel between machines: a few bytes of envelope and a body.

    1 byte   kind: hello, data, state or notice
    1 byte   flags
    2 bytes  sender, 2 bytes receiver: places in the federation's order, big-endian
    8 bytes  number: of the chunk for data, of the message for state
    body     a chunk of a frame; or a msgpack map, schema-checked, for the others

A frame of any size travels as chunks of at most 4 MiB of its payload; the first one carries the
header too. All lengths are checked before anything is built from them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar, cast

import msgspec
import numpy as np

from vertikal.errors import WireError
from vertikal.mesh import wire
from vertikal.records import msgpack_reader

ENVELOPE = struct.Struct(">BBHHQ")
HELLO, DATA, STATE, NOTICE = 1, 2, 3, 4
FIRST, LAST, ASK = 1, 2, 4
"""Flags: the first and the last chunk of a frame; a hello that wants one back."""

CHUNK = 1 << 22
"""The size of the blocks in which phases are sent, so that they need not be put together."""
MAX_CONTROL = 1 << 14
MAX_PACKET = CHUNK + wire.PREFIX.size + wire.MAX_HEADER + 64
"""A chunk with the header of its frame, its envelope and the tag of its encryption."""
MAX_TEXT = 500
MAX_WAITS = 16


class Packet(NamedTuple):
    """A checked packet; ``head`` is its envelope as bytes, to which an encryption is bound."""

    kind: int
    flags: int
    sender: int
    receiver: int
    number: int
    head: bytes
    body: memoryview


@dataclass(frozen=True, slots=True)
class Cut:
    """A packet in pieces; its body stays where it was cut from until it is written to a link."""

    pieces: tuple[bytes | memoryview, ...]
    size: int

    @classmethod
    def of(cls, *pieces: bytes | memoryview) -> Cut:
        return cls(pieces, sum(map(len, pieces)))

    def __len__(self) -> int:
        return self.size

    def __radd__(self, envelope: bytes) -> Cut:
        """Put a further envelope before it, as ``bytes`` + ``bytes`` would."""
        return Cut.of(envelope, *self.pieces)

    def whole(self) -> bytes:
        return b"".join(self.pieces)


Ready: TypeAlias = bytes | Cut
"""A packet on its way out."""


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first message of a party to each other one, sent under its signature."""

    sender: str
    receiver: str
    session: bytes
    protocol: int
    version: str
    job: str
    federation: str
    capacity: int
    key: bytes


class SignedHello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bytes of a hello, and the signature of its sender's identity over them."""

    hello: bytes
    signature: bytes


class WaitReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One wait of a party: the peer, the thing, and the seconds so far."""

    peer: str
    what: str
    seconds: float


class State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that one party tells another about itself; each state replaces the one before.

    It acknowledges, gives credit, asks for what was lost, says what the party is doing, and is the
    heartbeat.
    """

    received: int  # chunks that arrived in order: resend from this number on
    consumed: int  # bytes of frames that the program has taken
    sent: int  # chunks sent so far
    doing: str = ""
    waits: tuple[WaitReport, ...] = ()
    ended: str = ""  # "", "closed" or "failed"
    reason: str = ""
    knows: bool = False  # I know that you have ended
    want: bool = False  # tell me as soon as there is room
    resume: bool = False  # send again what I have not received
    answer: bool = False  # and ask me to do the same


class LinkNotice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A relay's message that another party's link to it stands, or has broken."""

    party: str
    up: bool


Message = TypeVar("Message", Hello, SignedHello, State, LinkNotice)

encode = msgspec.msgpack.Encoder().encode

_READERS = {kind: msgpack_reader(kind) for kind in (Hello, SignedHello, State, LinkNotice)}


def decode(body: bytes | memoryview, kind: type[Message]) -> Message:
    """Decode a control message of this kind; WireError for anything else."""
    if len(body) > MAX_CONTROL:
        raise WireError(f"{kind.__name__} of {len(body)} bytes, at most {MAX_CONTROL} are allowed")
    try:
        return cast(Message, _READERS[kind](body))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise WireError(f"{kind.__name__}: {error}") from None


def pack_head(kind: int, flags: int, sender: int, receiver: int, number: int) -> bytes:
    return ENVELOPE.pack(kind, flags, sender, receiver, number)


def read_envelope(raw: bytes, start: int = 0) -> tuple[int, int, int, int, int]:
    """Read the envelope at ``start``, and check size, kind and flags: all that a relay can check.

    Returns kind, flags, sender, receiver and number.
    """
    size = len(raw) - start
    if not ENVELOPE.size <= size <= MAX_PACKET:
        raise WireError(f"packet of {size} bytes, {ENVELOPE.size} to {MAX_PACKET} are allowed")
    kind, flags, sender, receiver, number = ENVELOPE.unpack_from(raw, start)
    if kind not in (HELLO, DATA, STATE, NOTICE):
        raise WireError(f"packet of unknown kind {kind}")
    allowed = {HELLO: ASK, DATA: FIRST | LAST}.get(kind, 0)
    if flags & ~allowed:
        raise WireError(f"packet of kind {kind} with flags {flags}")
    return kind, flags, sender, receiver, number


def unpack(raw: bytes, parties: int) -> Packet:
    """Read a packet, and check all that can be checked without its sender's state."""
    kind, flags, sender, receiver, number = read_envelope(raw)
    if sender >= parties or receiver >= parties or sender == receiver:
        raise WireError(f"packet from party {sender} to party {receiver} of {parties}")
    view = memoryview(raw)
    return Packet(
        kind,
        flags,
        sender,
        receiver,
        number,
        raw[: ENVELOPE.size],
        view[ENVELOPE.size :],
    )


def prepare_memory() -> None:
    """Let the C library keep blocks of a chunk's size instead of asking the system for each.

    glibc hands such blocks back when they are freed, and every chunk would cost hundreds of page
    faults, until a larger block has come and gone once (mallopt(3), M_MMAP_THRESHOLD). No page of
    this one is touched.
    """
    bytearray(24 << 20)


def whole(packet: Ready) -> bytes:
    """Join the pieces of a packet for a link."""
    return packet if isinstance(packet, bytes) else packet.whole()


def chunks(frame: wire.Frame) -> Iterator[tuple[int, tuple[bytes | memoryview, ...]]]:
    """Cut a frame into chunks: (flags, pieces) of each; the first holds the whole header too."""
    prefix, body = frame.buffers()
    yield FIRST | (LAST if len(body) <= CHUNK else 0), (prefix, body[:CHUNK])
    for start in range(CHUNK, len(body), CHUNK):
        yield LAST if start + CHUNK >= len(body) else 0, (body[start : start + CHUNK],)


class Assembly:
    """A frame that is arriving; its payload is allocated once its header has passed all checks."""

    def __init__(self, first: bytes | memoryview) -> None:
        view, place = memoryview(first), 0

        def read_exactly(count: int) -> bytes:
            nonlocal place
            piece = bytes(view[place : place + count])
            if len(piece) != count:
                raise WireError(f"a first chunk of {len(view)} bytes, shorter than its header")
            place += count
            return piece

        self.header, self._header_bytes, size = wire.read_head(read_exactly)
        rest, self._filled = view[place:], 0
        if len(rest) == size:  # All of it is here, and may stay where it is.
            self._body, self._filled = np.frombuffer(rest, np.uint8), size
            return
        try:
            self._body = np.empty(size, np.uint8)
        except MemoryError:
            raise WireError(f"{self.header.tag!r}: no memory for {size} bytes of payload") from None
        self.add(rest)

    def add(self, piece: bytes | memoryview) -> None:
        end = self._filled + len(piece)
        if end > len(self._body):
            raise WireError(
                f"{self.header.tag!r}: {end} bytes of payload, but announced {len(self._body)}"
            )
        if piece:  # By NumPy, which lets other threads work meanwhile.
            self._body[self._filled : end] = np.frombuffer(piece, np.uint8)
        self._filled = end

    def frame(self) -> wire.Frame:
        """The whole frame, after its last piece."""
        if self._filled != len(self._body):
            raise WireError(
                f"{self.header.tag!r}: {self._filled} bytes of payload, but announced "
                f"{len(self._body)}"
            )
        return wire.finish(self.header, self._header_bytes, self._body.data)
