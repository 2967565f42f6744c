"""Changes of a federation: a party's new key, and members that leave, signed by who may say so.

    rotation  a party has a new key; its old key signed that, and nobody else has to
    removal   some members leave; every member that remains signed that

The old key vouches for the new one as it vouched for every message before. Of removals nobody is
master but all who remain: without its own owner's signature no party's federation loses a member.

Changes may come in any order, since each says on what it rests: on the entries that the federation
began with (``root``), and on the key or the members before it. `follow` takes those that hold.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from vertikal.errors import InputError, VertikalError
from vertikal.records import msgpack_reader
from vertikal.secure.keys.identity import Certificate, Identity
from vertikal.secure.keys.prg import encode_texts

MAX_BYTES = 8 << 10
"""Bytes of one change without its signatures."""
MAX_KEYS = 100
"""Keys that one party may have had; then the parties make a new federation file."""
LEAST_DAYS = 30
"""Days for which the certificate of a new key must be good at least."""
_PREFIX = b"vertikal federation change\0"
_LATEST = 1e11
"""No time is later, in seconds since 1970: a date that can be printed."""


class Rotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """A party has a new key from now on."""

    root: str
    party: str
    old: str
    """Fingerprint of the key that it replaces."""
    certificate: str
    when: float


class Removal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Some members leave."""

    root: str
    members: tuple[str, ...]
    """All members before it, in alphabetical order."""
    removed: tuple[str, ...]
    proposer: str
    when: float

    @property
    def remaining(self) -> tuple[str, ...]:
        return tuple(name for name in self.members if name not in self.removed)


class SignedChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change as it was written, with the signatures over it by party."""

    raw: bytes
    signatures: dict[str, bytes]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def statement(self) -> Rotation | Removal:
        try:
            if len(self.raw) > MAX_BYTES:
                raise ValueError(f"{len(self.raw)} bytes, at most {MAX_BYTES} are allowed")
            return _read_statement(self.raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise InputError(f"change of the federation: {error}") from None

    def signed_by(self, identity: Identity) -> SignedChange:
        """This change with the signature of ``identity`` too."""
        signature = identity.sign(_PREFIX + self.raw)
        return SignedChange(self.raw, {**self.signatures, identity.name: signature})


_read_statement = msgpack_reader(Rotation | Removal)  # type: ignore[arg-type]


def rotate(root: str, old: Identity, new: Certificate) -> SignedChange:
    """The change to a new key, signed by the old one."""
    statement = Rotation(root, old.name, old.certificate.fingerprint, new.pem.decode(), time.time())
    return SignedChange(msgspec.msgpack.encode(statement), {}).signed_by(old)


def remove(
    root: str, members: Collection[str], removed: Collection[str], proposer: Identity
) -> SignedChange:
    """The change by which ``removed`` leave, signed by who proposes it."""
    statement = Removal(
        root, tuple(sorted(members)), tuple(sorted(set(removed))), proposer.name, time.time()
    )
    if len(statement.remaining) < 2:
        raise InputError.of(
            "removal", "one after which two parties at least remain", list(statement.remaining)
        )
    return SignedChange(msgspec.msgpack.encode(statement), {}).signed_by(proposer)


def root_of(founders: Mapping[str, Certificate]) -> str:
    """Digest of the names and keys that a federation began with."""
    texts = [text for name in sorted(founders) for text in (name, founders[name].fingerprint)]
    return hashlib.sha256(encode_texts("vertikal federation", *texts)).hexdigest()


@dataclass(frozen=True)
class History:
    """A federation from its founders to the present day."""

    certificates: dict[str, Certificate]
    """Of the present members, in the order of the founders."""
    earlier: dict[str, tuple[Certificate, ...]]
    """Certificates that count no more: replaced ones, and those of members that left."""
    applied: tuple[SignedChange, ...]
    pending: tuple[SignedChange, ...]
    """Removals that not all who remain have signed; of each proposer the newest."""


def follow(
    founders: Mapping[str, Certificate],
    listening: Collection[str],
    changes: Iterable[SignedChange],
) -> History:
    """Apply the changes that hold, in whatever order they come.

    Of two that exclude each other the first counts. After a removal somebody must still listen.
    """
    walk = _Walk(founders, listening)
    waiting = list(changes)
    applied: list[SignedChange] = []
    while True:
        done = [one for one in waiting if walk.apply(one)]
        if not done:
            break
        applied += [walk.trimmed(one) for one in done]
        waiting = [one for one in waiting if one not in done]
    return History(
        {name: chain[-1] for name, chain in walk.chains.items() if name in walk.present},
        {
            name: tuple(chain[:-1] if name in walk.present else chain)
            for name, chain in walk.chains.items()
        },
        tuple(applied),
        tuple(walk.newest_pending(waiting)),
    )


class _Walk:
    """The state of `follow`: who is a member, and which keys each has had."""

    def __init__(self, founders: Mapping[str, Certificate], listening: Collection[str]) -> None:
        self.root = root_of(founders)
        self.present = list(founders)
        self.chains = {name: [certificate] for name, certificate in founders.items()}
        self._listening = listening

    def apply(self, change: SignedChange) -> bool:
        """Apply a change if it holds now; whether it did."""
        try:
            statement = change.statement
            if isinstance(statement, Rotation):
                return self._rotate(change, statement)
            if not self._possible(statement) or set(statement.remaining) - self._signers(change):
                return False
        except VertikalError:
            return False
        self.present = [name for name in self.present if name not in statement.removed]
        return True

    def _rotate(self, change: SignedChange, statement: Rotation) -> bool:
        # Also of a member that left: whether its key or its removal came first makes no difference.
        chain = self.chains.get(statement.party)
        if statement.root != self.root or chain is None:
            return False
        if chain[-1].fingerprint != statement.old or len(chain) >= MAX_KEYS:
            return False
        new = Certificate.parse(statement.certificate.encode())
        # A key that anybody has had is not taken again: it may have been given up for a reason.
        used = {one.fingerprint for chain in self.chains.values() for one in chain}
        if new.name != statement.party or new.fingerprint in used:
            return False
        if (new.expires - new.begins).days < LEAST_DAYS or not 0 < statement.when < _LATEST:
            return False
        if not _holds(chain[-1], change.raw, change.signatures.get(statement.party, b"")):
            return False
        chain.append(new)
        return True

    def _possible(self, statement: Removal) -> bool:
        """Tell whether a removal is about these members, and leaves a federation."""
        remaining = statement.remaining
        return (
            statement.root == self.root
            and statement.members == tuple(sorted(self.present))
            and 0 < len(statement.removed) == len(set(statement.removed) & set(self.present))
            and len(remaining) >= 2
            and any(name in self._listening for name in remaining)
            and statement.proposer in remaining
            and 0 < statement.when < _LATEST
        )

    def _signers(self, change: SignedChange) -> set[str]:
        """Parties whose signature under a change holds, by any key that they have had."""
        return {
            name
            for name, signature in change.signatures.items()
            if any(
                _holds(certificate, change.raw, signature)
                for certificate in self.chains.get(name, [])
            )
        }

    def trimmed(self, change: SignedChange) -> SignedChange:
        """The change with no other signatures than those that hold and matter."""
        statement = change.statement
        wanted = (
            {statement.party}
            if isinstance(statement, Rotation)
            else self._signers(change) & set(statement.remaining)
        )
        kept = {name: one for name, one in change.signatures.items() if name in wanted}
        return SignedChange(change.raw, kept)

    def newest_pending(self, changes: Iterable[SignedChange]) -> list[SignedChange]:
        newest: dict[str, tuple[float, SignedChange]] = {}
        for change in changes:
            try:
                statement = change.statement
            except InputError:
                continue
            if not isinstance(statement, Removal) or not self._possible(statement):
                continue
            trimmed = self.trimmed(change)
            before = newest.get(statement.proposer)
            if statement.proposer in trimmed.signatures and (
                before is None or before[0] < statement.when
            ):
                newest[statement.proposer] = (statement.when, trimmed)
        return [change for _, change in newest.values()]


@lru_cache(4096)
def _holds(certificate: Certificate, raw: bytes, signature: bytes) -> bool:
    try:
        certificate.verify(_PREFIX + raw, signature)
    except VertikalError:
        return False
    return True


def is_signed(change: SignedChange, certificate: Certificate) -> bool:
    """Tell whether the key of this certificate signed a change in its party's name."""
    return _holds(certificate, change.raw, change.signatures.get(certificate.name, b""))


def describe(change: SignedChange) -> str:
    """A change in plain words, for its owner and the audit log."""
    statement = change.statement
    if isinstance(statement, Rotation):
        new = Certificate.parse(statement.certificate.encode()).fingerprint
        return f"{statement.party} has the key {new} in place of {statement.old}, which signed it"
    signed = [name for name in statement.remaining if name in change.signatures]
    missing = [name for name in statement.remaining if name not in change.signatures]
    words = f"{', '.join(statement.removed)} removed, proposed by {statement.proposer}, signed by "
    words += ", ".join(signed)
    return f"{words}; not signed by {', '.join(missing)}" if missing else words
