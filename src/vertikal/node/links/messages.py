"""What services say to one another, each message signed by its sender.

Messages may be lost when a link breaks; none needs an answer. A beat every second says what each
party knows, and whoever knows more tells it.
"""

from __future__ import annotations

import msgspec

from vertikal.errors import WireError
from vertikal.node.approval.proposals import Keys, SignedBytes
from vertikal.records import msgpack_reader

_PREFIX = b"vertikal message\0"
MAX_NEWS = 192 << 10
"""Bytes of news in one part of a beat: well below what a control message may have."""
MAX_PARTS = 64


class JobNews(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """One job as its party sees it; ``known`` are the parties whose decision it has.

    While it is ``alive`` to a party, the others answer with what they know of it.
    """

    digest: str
    attempt: int
    running: bool
    done: bool
    known: tuple[str, ...]
    final: bool
    alive: bool


class Beat(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True, omit_defaults=True):
    """I am here, at this time by my clock, and these are our common jobs.

    ``full`` says that the disk of my store is: no run begins until it has room. News of very many
    jobs come in several ``parts``.
    """

    version: str
    time: float
    jobs: tuple[JobNews, ...] = ()
    full: bool = False
    part: int = 0
    parts: int = 1


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """A proposal."""

    proposal: SignedBytes


class Answered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """A decision, my own or one that I was told."""

    decision: SignedBytes


class Begin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """The leader of a job begins this attempt at it."""

    digest: str
    attempt: int


class Serve(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """The leader of a finished job opens a session of predictions with its model."""

    digest: str
    session: str


class Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Bytes that measure a link; the answer brings the number and nothing else."""

    number: int
    load: bytes = b""
    answer: bool = False


Message = Beat | Asked | Answered | Begin | Serve | Probe


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sender: str
    receiver: str
    message: Message


class _Parcel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    raw: bytes
    signature: bytes


_read_parcel = msgpack_reader(_Parcel)
_read_envelope = msgpack_reader(_Envelope)


def pack(sender: str, receiver: str, message: Message, keys: Keys) -> bytes:
    """A message as it travels."""
    raw = msgspec.msgpack.encode(_Envelope(sender, receiver, message))
    return msgspec.msgpack.encode(_Parcel(raw, keys.sign(_PREFIX + raw)))


def unpack(sender: str, me: str, packed: bytes, keys: Keys) -> Message:
    """A message from ``sender`` to me, signed by it; WireError or IdentityError otherwise."""
    try:
        parcel = _read_parcel(packed)
        envelope = _read_envelope(parcel.raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise WireError(f"message of {sender}: {error}") from None
    if (envelope.sender, envelope.receiver) != (sender, me):
        raise WireError(
            f"message of {sender}: from {envelope.sender[:64]!r} to {envelope.receiver[:64]!r}"
        )
    keys.verify(sender, _PREFIX + parcel.raw, parcel.signature)
    return envelope.message


def split_beat(beat: Beat, most: int = MAX_NEWS) -> list[Beat]:
    """Split a beat into as many parts as its news need, mostly one."""
    pieces: list[list[JobNews]] = [[]]
    size = 0
    # Beyond the last part jobs that are done wait until others are settled.
    for one in sorted(beat.jobs, key=lambda one: one.done):
        length = len(msgspec.msgpack.encode(one))
        if size + length > most and pieces[-1]:
            pieces.append([])
            size = 0
        pieces[-1].append(one)
        size += length
    pieces = pieces[:MAX_PARTS]
    return [
        Beat(beat.version, beat.time, tuple(piece), beat.full, part, len(pieces))
        for part, piece in enumerate(pieces)
    ]


class BeatAssembly:
    """Puts the parts of each peer's beats together again."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Beat]] = {}

    def add(self, sender: str, part: Beat) -> Beat | None:
        """Take a part; returns the whole beat with its last part, unless one before was lost."""
        before = self._parts.pop(sender, []) if part.part else []
        if part.part != len(before) or not part.part < part.parts <= MAX_PARTS:
            return None
        if any((one.time, one.parts) != (part.time, part.parts) for one in before):
            return None
        parts = [*before, part]
        if len(parts) < part.parts:
            self._parts[sender] = parts
            return None
        self._parts.pop(sender, None)
        jobs = tuple(job for one in parts for job in one.jobs)
        return Beat(part.version, part.time, jobs, part.full)
