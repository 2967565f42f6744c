"""Records of the jobs that a party knows, on disk: one file each, whole after any crash.

A record holds the proposal and all decisions as they were signed, and what became of the job here.
The state of a job follows from these.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from pathlib import Path

import msgspec

from vertikal.errors import InputError, VertikalError
from vertikal.files import private_folder, write_whole
from vertikal.node.approval.proposals import (
    APPROVE,
    CANCEL,
    FINAL,
    REJECT,
    Decision,
    Keys,
    Proposal,
    SignedBytes,
    decode_proposal,
    read_decision,
    sign_decision_again,
    sign_proposal_again,
)
from vertikal.node.config.job_file import DIGITS, job_id
from vertikal.node.storage.audit_log import Fact
from vertikal.records import check_format, from_msgpack, msgpack_reader
from vertikal.version import PROTOCOL

_read_decision = msgpack_reader(Decision)
_STATES = {REJECT: "rejected", CANCEL: "cancelled"}


FORMAT = 1


class _Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int
    proposal: SignedBytes
    decisions: dict[str, SignedBytes]
    attempt: int
    done: bool
    words: str
    columns: tuple[str, ...]
    table: str
    changed: float
    by_rule: float = 0.0
    settled: bool = False
    format: int = FORMAT


@dataclass
class JobRecord:
    """One job at this party."""

    number: int
    """Number of its file in this party's store; nobody else knows the job by it."""
    signed: SignedBytes
    proposal: Proposal
    decisions: dict[str, tuple[SignedBytes, Decision]] = field(default_factory=dict)
    attempt: int = 0
    """Runs begun so far; a run is never begun twice."""
    done: bool = False
    """True once this party's shard is in its store."""
    note: str = ""
    """A text for its owner only: why the job waits or stopped, or what was flagged."""
    columns: tuple[str, ...] = ()
    """This party's columns that the job uses, as approved."""
    table: str = ""
    """Digest of this party's table when it approved."""
    changed: float = 0.0
    by_rule: float = 0.0
    """Time at which a standing rule approved it here, also after it was ended; 0 if none did."""
    settled: bool = False
    """True once this party has heard that all are done: the job need not be in beats any more."""
    protocol: int = PROTOCOL
    """Protocol of the run that was begun last; it is not kept on disk."""
    digits: int = DIGITS
    """Digits of the digest that tell the job apart from others of its name here."""

    @property
    def id(self) -> str:
        """The job as owners name it, at every party: ``credit-7f3a``."""
        return job_id(self.proposal.name, self.digest, self.digits)

    @property
    def digest(self) -> str:
        return self.signed.digest

    @property
    def facts(self) -> dict[str, Fact]:
        """The job as lines of the audit log name it."""
        return {
            "job": self.id,
            "digest": self.digest,
            "name": self.proposal.name,
            "submitter": self.proposal.submitter,
        }

    def leads(self, party: str) -> bool:
        return self.proposal.job.leader == party

    def verdict(self, party: str) -> str:
        entry = self.decisions.get(party)
        return entry[1].verdict if entry else ""

    def ids_of(self, party: str) -> int | None:
        """Ids that a party may bring to the alignment; None as long as it has not approved.

        Those of the leader stand in its proposal, those of others in their approvals.
        """
        if self.leads(party):
            return self.proposal.rows
        return self.decisions[party][1].ids if self.verdict(party) == APPROVE else None

    @property
    def final(self) -> Decision | None:
        """The decision that ended the job, if one did."""
        # A copy, since another thread may take a decision in meanwhile.
        for _, decision in list(self.decisions.values()):
            if decision.verdict in FINAL:
                return decision
        return None

    @property
    def approved_by_all(self) -> bool:
        return all(self.verdict(name) == APPROVE for name in self.proposal.job.names)

    @property
    def open(self) -> bool:
        return self.final is None and not self.done

    @property
    def expired(self) -> bool:
        """True if some have not approved the job in the time that it gives them."""
        age = time.time() - self.proposal.submitted
        return self.open and not self.approved_by_all and age > self.proposal.job.lifetime

    @property
    def undecided(self) -> list[str]:
        """The parties that have not decided."""
        return [name for name in self.proposal.job.names if not self.verdict(name)]

    def state(self, me: str) -> str:
        """Say in a few words, as lists show it, how far the job has come."""
        if self.final is not None:
            said = _STATES.get(self.final.verdict, "stopped")
            return f"{said} by {self.final.party}"
        if self.done:
            return "done"
        if self.approved_by_all:
            return "approved by all"
        if not self.verdict(me):
            return "asks for your approval"
        return f"waits for the approval of {', '.join(self.undecided)}"

    def is_news(self, decision: Decision) -> bool:
        """Return True if a decision changes anything. Only a final one replaces an approval."""
        if decision.digest != self.digest or decision.party not in self.proposal.job.parties:
            return False
        known = self.verdict(decision.party)
        if known and (known in FINAL or decision.verdict == APPROVE):
            return False
        return not (self.done and decision.verdict in FINAL)

    def add(self, signed: SignedBytes, decision: Decision) -> bool:
        """Take a decision in if it changes anything; returns True if it did."""
        is_new = self.is_news(decision)
        if is_new:
            self.decisions[decision.party] = (signed, decision)
        return is_new


class JobBook:
    """All records of one party; every change is on disk before it is acted on."""

    def __init__(self, folder: Path, keys: Keys, say: Callable[[str], None] = print) -> None:
        self._folder = private_folder(folder)
        self.lock = threading.RLock()
        self._records: dict[str, JobRecord] = {}
        self._last = 0
        for path in sorted(folder.glob("*.job")):
            # The number of a file that cannot be read is given to no other job.
            self._last = max(self._last, int(path.stem) if path.stem.isdecimal() else 0)
            try:
                record = _load(path, keys, say)
            except Exception as error:
                # One job is lost to this party; all others must go on.
                say(f"job file {path.name!r} of the store is damaged and left aside: {error}")
            else:
                self._records[record.digest] = record
        self._tell_apart()

    def all(self) -> list[JobRecord]:
        with self.lock:
            return sorted(self._records.values(), key=lambda record: record.number)

    def find(self, digest: str) -> JobRecord | None:
        with self.lock:
            return self._records.get(digest)

    def named(self, text: str) -> JobRecord:
        """Find the one job of an id such as ``credit-7f3a``, or of the beginning of its digest."""
        name, _, digits = str(text).rpartition("-")
        digits = digits.lower()
        found = [
            record
            for record in self.all()
            if record.digest.startswith(digits) and name in ("", record.proposal.name)
        ]
        if len(digits) < DIGITS or not found:
            same = [record.id for record in self.all() if record.proposal.name == text]
            raise InputError(
                f"there is no job {str(text)[:80]!r}; "
                + (f"of this name are {', '.join(same)}; " if same else "")
                + "`vertikal job list` shows those there are"
            )
        if len(found) > 1:
            ids = " or ".join(record.id for record in found)
            raise InputError(f"job {text!r} may be {ids}: give more digits of its digest")
        return found[0]

    def add(self, signed: SignedBytes, proposal: Proposal) -> JobRecord:
        """Add a record under the next number; the first `changing` of it saves it."""
        with self.lock:
            numbers = (record.number for record in self._records.values())
            record = JobRecord(max(self._last, *numbers, 0) + 1, signed, proposal)
            self._records[record.digest] = record
            self._tell_apart()
            return record

    def _tell_apart(self) -> None:
        """Give each job as many digits of its digest as no other of its name begins with here."""
        ordered = sorted(self._records.values(), key=lambda one: (one.proposal.name, one.digest))
        for one, other in pairwise(ordered):
            if one.proposal.name == other.proposal.name:
                alike = zip(one.digest, other.digest, strict=True)
                common = sum(1 for _ in takewhile(lambda digits: digits[0] == digits[1], alike))
                for record in (one, other):
                    record.digits = max(record.digits, common + 1)

    @contextmanager
    def changing(self, record: JobRecord) -> Iterator[None]:
        """Save a record after the changes in this block; if it cannot be saved, undo them."""
        with self.lock:
            before = {**vars(record), "decisions": dict(record.decisions)}
            try:
                yield
                self.save(record)
            except BaseException:
                vars(record).update(before)
                if not record.changed:
                    self._records.pop(record.digest, None)
                raise

    def sign_again(self, me: str, keys: Keys) -> None:
        """Sign what this party said about open jobs by its new key, for who has not heard it yet.

        Others take in nothing that is signed by an old key, since a thief may have it.
        """
        with self.lock:
            for record in self.all():
                if not record.open:
                    continue
                with self.changing(record):
                    if record.proposal.submitter == me:
                        record.signed = sign_proposal_again(record.signed, keys)
                    if me in record.decisions:
                        signed, decision = record.decisions[me]
                        record.decisions[me] = (sign_decision_again(signed, keys), decision)

    def save(self, record: JobRecord) -> None:
        with self.lock:
            changed = time.time()
            saved = _Saved(
                record.number,
                record.signed,
                {party: signed for party, (signed, _) in record.decisions.items()},
                record.attempt,
                record.done,
                record.note,
                record.columns,
                record.table,
                changed,
                record.by_rule,
                record.settled,
            )
            write_whole(self._folder / f"{record.number:06}.job", msgspec.msgpack.encode(saved))
            record.changed = changed


def _load(path: Path, keys: Keys, say: Callable[[str], None]) -> JobRecord:
    """Read a record from its file.

    As long as a job is open, the signatures of its decisions are checked again, by the certificates
    of today. A job that has ended stays as it was, also when members have since left or renewed
    their keys.
    """
    raw = path.read_bytes()
    check_format(raw, FORMAT, f"job file {path.name!r}", packed=True)
    saved = from_msgpack(raw, _Saved)
    record = JobRecord(saved.number, saved.proposal, decode_proposal(saved.proposal))
    decisions = [(signed, _read_decision(signed.raw)) for signed in saved.decisions.values()]
    over = saved.done or any(decision.verdict in FINAL for _, decision in decisions)
    for signed, decision in decisions:
        try:
            record.add(signed, decision if over else read_decision(signed, keys, kept=True))
        except VertikalError as error:
            say(
                f"job {record.id}: the decision of {decision.party} does not count any more, "
                f"and has to be made again: {error}"
            )
    record.attempt, record.done, record.note = saved.attempt, saved.done, saved.words
    record.columns, record.table, record.changed = saved.columns, saved.table, saved.changed
    record.by_rule, record.settled = saved.by_rule, saved.settled
    return record
