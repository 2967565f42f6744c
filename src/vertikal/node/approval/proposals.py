"""Proposals of jobs and decisions about them, each signed by the party that makes it.

A proposal is a job as its leader submitted it. Its digest is that of the signed bytes, so that a
decision is about exactly these bytes: a job that was altered has another digest and nobody's
approval. A nonce makes the same job, submitted again, another proposal.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Collection
from typing import Protocol

import msgspec

from vertikal.errors import IdentityError, InputError
from vertikal.node.config.job_file import Job
from vertikal.node.printable import is_plain, printable
from vertikal.records import msgpack_reader
from vertikal.version import __version__

APPROVE, REJECT, CANCEL, STOP = "approve", "reject", "cancel", "stop"
FINAL = (REJECT, CANCEL, STOP)
MAX_REASON = 300
AHEAD = 300.0
"""Seconds that another party's clock may be ahead of this one's."""
MAX_PROPOSAL = 252 << 10
"""Bytes of a proposal, so that a control message holds it with names and signatures."""
OLDEST = 30 * 86400.0
"""Seconds after which a proposal is too old to be taken up."""
LATEST = 1e11
"""No time is later, in seconds since 1970: a date that can be printed."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PROPOSAL = b"vertikal proposal\0"
_DECISION = b"vertikal decision\0"


class Keys(Protocol):
    """This party's key and everybody's certificates (`secure.keys.credentials`)."""

    def sign(self, message: bytes) -> bytes: ...

    def verify(self, peer: str, message: bytes, signature: bytes) -> None: ...

    def verify_kept(self, peer: str, message: bytes, signature: bytes) -> None: ...


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job, by whom and when it was submitted."""

    name: str
    job: Job
    submitter: str
    submitted: float
    version: str
    rows: int
    """Rows of the submitter's own table: estimates of cost go by them, and it may bring no more ids
    than these to the alignment."""
    nonce: str


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One party's verdict on one proposal; ``words`` are its reason, which all parties read.

    With its approval a party says how many ``ids`` it brings to the alignment, rounded up as there.
    """

    digest: str
    party: str
    verdict: str
    when: float
    words: str = ""
    ids: int = 0


class SignedBytes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes and the signature over them, kept and passed on as they came."""

    raw: bytes
    signature: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def whole_digest(self) -> str:
        """Digest of the bytes with their signature: another one when they are signed anew."""
        return hashlib.sha256(self.raw + self.signature).hexdigest()


_read_proposal = msgpack_reader(Proposal)
_read_decision = msgpack_reader(Decision)


def propose(name: str, job: Job, me: str, rows: int, keys: Keys) -> SignedBytes:
    """Make this party's proposal and sign it."""
    proposal = Proposal(name, job, me, time.time(), __version__, rows, secrets.token_hex(16))
    try:
        raw = msgspec.msgpack.encode(proposal)
    except (OverflowError, RecursionError) as error:
        raise InputError(f"job: it cannot be sent: {error}") from None
    if len(raw) > MAX_PROPOSAL:
        raise InputError(
            f"job: it would take {len(raw)} bytes to send, at most {MAX_PROPOSAL} are allowed; a "
            "party whose columns are not listed brings all that it offers"
        )
    return SignedBytes(raw, keys.sign(_PROPOSAL + raw))


def read_proposal(signed: SignedBytes, me: str, members: Collection[str], keys: Keys) -> Proposal:
    """Read a proposal that its submitter signed and was allowed to make; refuse any other.

    ``members`` are the parties of the federation: nobody else may take part.
    """
    proposal = decode_proposal(signed)
    # First of all, so that nothing is said about a job that its submitter did not sign.
    keys.verify(proposal.submitter, _PROPOSAL + signed.raw, signed.signature)
    if me not in proposal.job.parties:
        raise InputError(f"{me} is not a party of this job; those are {proposal.job.names}")
    check_members(proposal.job, members)
    check_name(proposal.name)
    proposal.job.check()
    proposal.job.check_for_services()
    if proposal.submitter != proposal.job.leader:
        raise IdentityError(
            f"this job must be submitted by its first label party {proposal.job.leader!r}, got "
            f"{proposal.submitter!r}"
        )
    return proposal


def check_members(job: Job, members: Collection[str]) -> None:
    """Refuse a job with a party that is not in the federation."""
    for name in job.names:
        if name not in members:
            raise InputError(f"job: {name[:80]!r} is not in the federation file")


def check_name(name: str) -> None:
    """Refuse a name of a model that cannot be the name of a folder in each party's store."""
    if not _NAME.fullmatch(name):
        raise InputError.of(
            "name of the model", "1 to 64 letters, digits, dots, dashes or underscores", name[:80]
        )


def decode_proposal(signed: SignedBytes) -> Proposal:
    """Read a proposal without checking who signed it."""
    try:
        proposal = _read_proposal(signed.raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"proposal: {error}") from None
    _check_date("proposal", proposal.submitted)
    return proposal


def _check_date(what: str, when: float) -> None:
    """Refuse a time that is no date: whoever shows the proposal or decision would fail at it."""
    if not 0 < when < LATEST:
        raise InputError(f"{what}: its time must be in seconds since 1970, got {when!r}")


def check_age(proposal: Proposal, me: str) -> None:
    """Refuse a new proposal that is old, or that was submitted in the future by this clock."""
    ahead = proposal.submitted - time.time()
    if ahead > AHEAD:
        raise InputError(
            f"{me}: this job says it was submitted {ahead:.0f} s from now; the clocks of "
            f"{proposal.submitter} and {me} are apart: set them right and submit it again"
        )
    if -ahead > OLDEST:
        raise InputError(
            f"{me}: this job was submitted {-ahead / 86400:.0f} days ago; submit it again"
        )


def decide(
    digest: str, me: str, verdict: str, reason: str, keys: Keys, ids: int = 0
) -> SignedBytes:
    """Make this party's decision and sign it."""
    decision = Decision(digest, me, verdict, time.time(), printable(reason)[:MAX_REASON], ids)
    raw = msgspec.msgpack.encode(decision)
    return SignedBytes(raw, keys.sign(_DECISION + raw))


def sign_proposal_again(signed: SignedBytes, keys: Keys) -> SignedBytes:
    """Sign this party's own proposal by its new key; its digest stays."""
    return SignedBytes(signed.raw, keys.sign(_PROPOSAL + signed.raw))


def sign_decision_again(signed: SignedBytes, keys: Keys) -> SignedBytes:
    """Sign this party's own decision by its new key."""
    return SignedBytes(signed.raw, keys.sign(_DECISION + signed.raw))


def read_decision(signed: SignedBytes, keys: Keys, *, kept: bool = False) -> Decision:
    """Read a decision that the party that it names signed; refuse any other.

    One that was ``kept`` in this party's records may be signed by a key that the party had then.
    """
    try:
        decision = _read_decision(signed.raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"decision: {error}") from None
    _check_date("decision", decision.when)
    if decision.verdict not in (APPROVE, *FINAL):
        raise InputError(f"decision: unknown verdict {decision.verdict[:20]!r}")
    if not is_plain(decision.words, MAX_REASON):
        raise InputError(
            f"decision: its reason must be at most {MAX_REASON} printable characters, got "
            f"{decision.words[:20]!r}"
        )
    verify = keys.verify_kept if kept else keys.verify
    verify(decision.party, _DECISION + signed.raw, signed.signature)
    return decision
