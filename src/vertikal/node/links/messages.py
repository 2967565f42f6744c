"""Control messages between services, each signed by its sender.

A message may be lost when a link breaks, and none needs an answer: the beat that each party sends
every second says what it knows, and whoever knows more sends it again. News of very many jobs make
a beat too long for one message; it then travels in parts.
"""

from __future__ import annotations

import msgspec

from vertikal.errors import WireError
from vertikal.node.approval.catalog import CatalogEntry
from vertikal.node.approval.proposals import Keys, SignedBytes
from vertikal.node.config.federation_changes import SignedChange
from vertikal.node.links.protocols import Spoken
from vertikal.records import msgpack_reader

_PREFIX = b"vertikal message\0"
MAX_NEWS = 192 << 10
"""Bytes of news in one part of a beat: well below what a control message may have."""
MAX_PARTS = 64


class JobNews(msgspec.Struct, frozen=True, array_like=True):
    """One job as the sender sees it; ``known`` are the parties whose decision it has.

    While a job is ``alive`` to a party, the others tell it what they know of the job.
    """

    digest: str
    attempt: int
    running: bool
    done: bool
    known: tuple[str, ...]
    final: bool
    alive: bool


class Beat(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The sender is there, at this time by its clock, and these are the common jobs.

    ``full`` says that the disk of its store is full: no run begins until there is room. This is
    number ``part`` of ``parts``, counted from 0. ``federation`` is the state of its federation
    file. It speaks the protocols from ``oldest`` to ``newest`` (`protocols.py`). Fields that a
    later release adds to a beat are passed over: a beat is how releases learn of one another.
    """

    version: str
    time: float
    jobs: tuple[JobNews, ...] = ()
    full: bool = False
    part: int = 0
    parts: int = 1
    federation: str = ""
    oldest: int = 1
    newest: int = 1

    @property
    def spoken(self) -> Spoken:
        return self.oldest, self.newest


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """A proposal, as its submitter signed it."""

    proposal: SignedBytes


class Answered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """A decision, of the sender or of another party, as that party signed it."""

    decision: SignedBytes


class Begin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """The leader of a job begins this run of it, which speaks this protocol."""

    digest: str
    attempt: int
    protocol: int = 1


class Serve(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """The leader of a finished job opens a session of predictions, which speaks this protocol."""

    digest: str
    session: str
    protocol: int = 1


class Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Bytes that measure a link; the answer carries the number and no load."""

    number: int
    load: bytes = b""
    answer: bool = False


class Changed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Changes of the federation, each with signatures of its own."""

    changes: tuple[SignedChange, ...]


class CatalogAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """The sender asks what the receiver offers to it; the answer carries the number."""

    number: int


class CatalogTold(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """The part of its offers that the sender tells the receiver."""

    number: int
    entry: CatalogEntry


Message = Beat | Asked | Answered | Begin | Serve | Probe | Changed | CatalogAsked | CatalogTold


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
    """Sign a message for one receiver and write it as bytes."""
    raw = msgspec.msgpack.encode(_Envelope(sender, receiver, message))
    return msgspec.msgpack.encode(_Parcel(raw, keys.sign(_PREFIX + raw)))


def unpack(sender: str, me: str, packed: bytes, keys: Keys) -> Message:
    """Read a message from ``sender`` to ``me``; WireError or IdentityError if it is not that."""
    try:
        parcel = _read_parcel(packed)
        envelope = _read_envelope(parcel.raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise WireError(f"message of {sender}: {error}") from None
    if (envelope.sender, envelope.receiver) != (sender, me):
        raise WireError(
            f"message of {sender}: from {envelope.sender[:64]!r} to {envelope.receiver[:64]!r}"
        )
    # Changes carry their own signatures, and must be heard of a party whose new key they bring.
    if not isinstance(envelope.message, Changed):
        keys.verify(sender, _PREFIX + parcel.raw, parcel.signature)
    return envelope.message


def split_beat(beat: Beat, most: int = MAX_NEWS) -> list[Beat]:
    """Split a beat into as many parts as its news need, mostly one."""
    pieces: list[list[JobNews]] = [[]]
    size = 0
    # Open jobs first: where there are too many parts, those that are done wait for a later beat.
    for one in sorted(beat.jobs, key=lambda one: one.done):
        length = len(msgspec.msgpack.encode(one))
        if size + length > most and pieces[-1]:
            pieces.append([])
            size = 0
        pieces[-1].append(one)
        size += length
    pieces = pieces[:MAX_PARTS]
    return [
        msgspec.structs.replace(beat, jobs=tuple(piece), part=part, parts=len(pieces))
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
        return msgspec.structs.replace(part, jobs=jobs, part=0, parts=1)
